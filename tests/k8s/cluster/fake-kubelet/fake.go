package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// What we know of a pod that its object does not say to the millisecond.
type times struct {
	seen, started time.Time
	restarts      int
	address       string
	version       uint64 // of the object as we wrote it last: what is older in the store is not looked at
}

type fake struct {
	client kubernetes.Interface
	node   string
	store  cache.Store
	queue  workqueue.TypedRateLimitingInterface[string]

	mutex sync.Mutex // of all below
	pods  map[types.UID]*times
	count int
	trace *bufio.Writer
	file  *os.File
}

func newFake(client kubernetes.Interface, node, trace string) (*fake, error) {
	f := &fake{client: client, node: node, pods: map[types.UID]*times{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 5*time.Second))}
	if trace != "" {
		file, err := os.Create(trace)
		if err != nil {
			return nil, err
		}
		f.file, f.trace = file, bufio.NewWriter(file)
	}
	return f, nil
}

// Until ctx ends.
func (f *fake) run(ctx context.Context, workers int) {
	source := cache.NewListWatchFromClient(f.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.Pod{}, Transform: slim,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { f.note(object.(*corev1.Pod)) },
			UpdateFunc: func(_, object any) { f.note(object.(*corev1.Pod)) },
			DeleteFunc: f.forget,
		}})
	f.store = store
	var group sync.WaitGroup
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for f.next(ctx) {
			}
		}()
	}
	go f.flush(ctx)
	informer.Run(ctx.Done())
	f.queue.ShutDown()
	group.Wait()
	f.writeOut()
}

// slim drops what we never read: ten thousand pods are to fit beside what is measured.
func slim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.OwnerReferences = nil
		pod.Spec.Volumes = nil
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i] = corev1.Container{Name: pod.Spec.Containers[i].Name, Image: pod.Spec.Containers[i].Image}
		}
		for i := range pod.Spec.InitContainers {
			pod.Spec.InitContainers[i] = corev1.Container{Name: pod.Spec.InitContainers[i].Name, Image: pod.Spec.InitContainers[i].Image}
		}
	}
	return object, nil
}

func (f *fake) note(pod *corev1.Pod) {
	f.mutex.Lock()
	if f.pods[pod.UID] == nil {
		f.count++
		f.pods[pod.UID] = &times{seen: time.Now(), address: address(f.count)}
		f.say("seen", pod)
	}
	f.mutex.Unlock()
	f.queue.Add(cache.MetaObjectToName(pod).String())
}

func (f *fake) forget(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		f.mutex.Lock()
		delete(f.pods, pod.UID)
		f.say("gone", pod)
		f.mutex.Unlock()
	}
}

// Addresses of a range that nothing else of the cluster uses.
func address(number int) string {
	return fmt.Sprintf("10.%d.%d.%d", 128+number>>16&0x7f, number>>8&0xff, number&0xff)
}

func (f *fake) next(ctx context.Context) bool {
	key, quit := f.queue.Get()
	if quit {
		return false
	}
	defer f.queue.Done(key)
	object, exists, _ := f.store.GetByKey(key)
	if !exists {
		f.queue.Forget(key)
		return true
	}
	wait, err := f.move(ctx, object.(*corev1.Pod), time.Now())
	switch {
	case err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil:
		fmt.Fprintf(os.Stderr, "fake-kubelet: %s: %v\n", key, err)
		f.queue.AddRateLimited(key)
	default:
		f.queue.Forget(key)
		if wait > 0 {
			f.queue.AddAfter(key, wait)
		}
	}
	return true
}

// say writes a line of the trace; the mutex is held.
func (f *fake) say(event string, pod *corev1.Pod) {
	if f.trace != nil {
		line, _ := json.Marshal(map[string]any{"t": float64(time.Now().UnixMicro()) / 1e6, "event": event,
			"pod": pod.Namespace + "/" + pod.Name})
		f.trace.Write(append(line, '\n'))
	}
}

// The trace is whole to within a fifth of a second.
func (f *fake) flush(ctx context.Context) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.writeOut()
		}
	}
}

func (f *fake) writeOut() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.trace != nil {
		f.trace.Flush()
	}
}

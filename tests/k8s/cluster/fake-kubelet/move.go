package main

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An annotation's words; what cannot be read counts as not said.
type plan struct {
	given, never  bool
	after         time.Duration
	phase, reason string
	code          int32
}

func planOf(pod *corev1.Pod, name string) plan {
	text, given := pod.Annotations["tutti-test/"+name]
	p := plan{given: given, phase: string(corev1.PodSucceeded)}
	for _, word := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		switch key {
		case "never":
			p.never = true
		case "after":
			p.after, _ = time.ParseDuration(value)
		case "phase":
			p.phase = value
		case "reason":
			p.reason = value
		case "code":
			number, _ := strconv.Atoi(value)
			p.code = int32(number)
		}
	}
	if p.phase == string(corev1.PodFailed) && p.code == 0 {
		p.code = 1
	}
	return p
}

// move takes the one step that is due, or says how long until one is; 0 when none is in sight.
func (f *fake) move(ctx context.Context, pod *corev1.Pod, now time.Time) (time.Duration, error) {
	f.mutex.Lock()
	known := f.pods[pod.UID]
	f.mutex.Unlock()
	if known == nil || versionOf(pod) < known.version {
		return 0, nil
	}
	if pod.DeletionTimestamp != nil {
		return f.drain(ctx, pod, now)
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return 0, nil
	case corev1.PodRunning:
		return f.end(ctx, pod, known, now)
	}
	return f.start(ctx, pod, known, now)
}

func (f *fake) drain(ctx context.Context, pod *corev1.Pod, now time.Time) (time.Duration, error) {
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	asked := pod.DeletionTimestamp.Add(-grace)
	wait := asked.Add(min(planOf(pod, "drains").after, grace)).Sub(now)
	if wait > 0 {
		return wait, nil
	}
	none := int64(0)
	return 0, f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
}

func (f *fake) start(ctx context.Context, pod *corev1.Pod, known *times, now time.Time) (time.Duration, error) {
	plan := planOf(pod, "starts")
	if plan.reason != "" {
		if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == plan.reason {
			return 0, nil
		}
		state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: plan.reason}}
		return 0, f.tell(ctx, pod, known, "waiting", status(pod, known, corev1.PodPending, state, now))
	}
	if plan.never {
		return 0, nil
	}
	if wait := known.seen.Add(plan.after).Sub(now); wait > 0 {
		return wait, nil
	}
	if f.node != "" && pod.Spec.NodeName == "" {
		if err := f.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: f.node}}, metav1.CreateOptions{}); err != nil {
			return 0, err
		}
	}
	if known.started.IsZero() {
		known.started = now
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	return 0, f.tell(ctx, pod, known, "running", status(pod, known, corev1.PodRunning, state, now))
}

func (f *fake) end(ctx context.Context, pod *corev1.Pod, known *times, now time.Time) (time.Duration, error) {
	plan := planOf(pod, "ends")
	if !plan.given || plan.never {
		return 0, nil
	}
	if known.started.IsZero() { // another of us started it
		known.started = now
	}
	if wait := known.started.Add(plan.after).Sub(now); wait > 0 {
		return wait, nil
	}
	policy := pod.Spec.RestartPolicy
	if policy == corev1.RestartPolicyAlways || (policy == corev1.RestartPolicyOnFailure && plan.code != 0) {
		known.restarts++
		known.started = now
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
		return plan.after, f.tell(ctx, pod, known, "restarted", status(pod, known, corev1.PodRunning, state, now))
	}
	reason := plan.reason
	if reason == "" && plan.code == 0 {
		reason = "Completed"
	} else if reason == "" {
		reason = "Error"
	}
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: plan.code, Reason: reason,
		StartedAt: metav1.NewTime(known.started), FinishedAt: metav1.NewTime(now)}}
	done := status(pod, known, corev1.PodPhase(plan.phase), state, now)
	if plan.reason != "" {
		done.Reason = plan.reason
	}
	return 0, f.tell(ctx, pod, known, "ended", done)
}

// The whole status that a kubelet would give.
func status(pod *corev1.Pod, known *times, phase corev1.PodPhase, state corev1.ContainerState, now time.Time) *corev1.PodStatus {
	running := state.Running != nil
	made := &corev1.PodStatus{Phase: phase}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		value := corev1.ConditionTrue
		if (kind == corev1.ContainersReady || kind == corev1.PodReady) && !running {
			value = corev1.ConditionFalse
		}
		made.Conditions = append(made.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: metav1.NewTime(now)})
	}
	for _, container := range pod.Spec.Containers {
		made.ContainerStatuses = append(made.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image,
			State: state, Ready: running, Started: &running, RestartCount: int32(known.restarts),
			ContainerID: "fake://" + string(pod.UID) + "/" + container.Name})
	}
	for _, container := range pod.Spec.InitContainers {
		made.InitContainerStatuses = append(made.InitContainerStatuses, corev1.ContainerStatus{Name: container.Name,
			Image: container.Image, Ready: true, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}})
	}
	if phase != corev1.PodPending {
		began := metav1.NewTime(known.seen)
		made.StartTime = &began
		made.HostIP, made.PodIP = "10.89.0.1", known.address
		made.PodIPs = []corev1.PodIP{{IP: known.address}}
	}
	return made
}

// Numbers that grow, in an API server over etcd; 0 should that change.
func versionOf(pod *corev1.Pod) uint64 {
	version, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	return version
}

// tell writes the status; a pod of the same name but another uid is left alone.
func (f *fake) tell(ctx context.Context, pod *corev1.Pod, known *times, event string, status *corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	written, err := f.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		known.version = versionOf(written)
		f.mutex.Lock()
		f.say(event, pod)
		f.mutex.Unlock()
	}
	return err
}

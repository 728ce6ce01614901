// fake-kubelet - moves pods through their phases where there is no node: for tests of speed and of many pods at once.
//
// A pod runs as soon as it is seen, gets an address of its own, and stays until it is deleted or told otherwise by
// annotations, which may be set or changed at any time:
//
//	tutti-test/starts: after=1s | never | reason=ImagePullBackOff   (never with a reason that the status tells)
//	tutti-test/ends:   after=2s,phase=Failed,code=3,reason=Evicted  (phase Succeeded when not given)
//	tutti-test/drains: after=3s                                     (deleted: gone after so long, the grace at most)
//
// A container that fails and may restart counts that and runs again, so long as the annotation stays.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	workers := flag.Int("workers", 16, "requests at once")
	bind := flag.String("bind", "", "node that pods without one are bound to, as a scheduler does; \"\" leaves them without")
	trace := flag.String("trace", "", "file for one line of JSON a pod and event: {\"t\": seconds, \"event\", \"pod\"}")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	config.QPS = -1 // no limit: the API server is what is measured
	config.UserAgent = "fake-kubelet"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	fake, err := newFake(client, *bind, *trace)
	if err != nil {
		fail(err)
	}
	fake.run(ctx, *workers)
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "fake-kubelet: %v\n", err)
	os.Exit(1)
}

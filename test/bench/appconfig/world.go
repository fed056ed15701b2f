package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/test/plane"
)

// bench is the API server, its objects, and the provider.
type bench struct {
	cli *cli
	dir string

	plane    *plane.Plane
	admin    client.WithWatch
	proxy    *proxy
	provider *exec.Cmd
	cancel   context.CancelFunc

	mu sync.Mutex
	// patched is when a Deployment was first observed with a bundle, by "namespace/name/bundle".
	patched map[string]time.Time
	// news receives a value when an entry was added to patched.
	news chan struct{}
}

func (b *bench) start(ctx context.Context) error {
	b.patched, b.news = map[string]time.Time{}, make(chan struct{}, 1)
	ctx, b.cancel = context.WithCancel(ctx)
	var err error
	if b.plane, err = plane.Start(ctx, b.dir, false); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extv1.AddToScheme(scheme), configv1.SchemeBuilder.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("cannot register kinds: %w", err)
	}
	if b.admin, err = client.NewWithWatch(b.plane.Config(plane.Admin), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	if err := plane.Install(ctx, b.admin, b.cli.Root); err != nil {
		return err
	}
	if b.proxy, err = newProxy(ctx, b.plane.Config(plane.Provider)); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(b.dir, "provider"), "./cmd/provider")
	build.Dir = b.cli.Root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the provider: %w: %s", err, out)
	}
	for range 4 {
		go b.control(ctx)
	}
	go b.watch(ctx)
	return b.run()
}

// run starts the provider as it is shipped, with the proxy as its API server.
func (b *bench) run() error {
	c := clientcmdapi.NewConfig()
	c.Clusters["proxy"] = &clientcmdapi.Cluster{Server: b.proxy.address}
	c.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	c.CurrentContext = "proxy"
	kubeconfig := filepath.Join(b.dir, "proxy.kubeconfig")
	if err := clientcmd.WriteToFile(*c, kubeconfig); err != nil {
		return fmt.Errorf("cannot write %s: %w", kubeconfig, err)
	}
	log, err := os.OpenFile(filepath.Join(b.dir, "provider.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot make a log: %w", err)
	}
	defer func() { _ = log.Close() }()
	b.provider = exec.Command(filepath.Join(b.dir, "provider"), "--no-leader-election", "--metrics-address=0", "--health-address=0") //nolint:noctx // halt kills it.
	b.provider.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	b.provider.Stdout, b.provider.Stderr = log, log
	b.provider.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.provider.Start(); err != nil {
		return fmt.Errorf("cannot start the provider: %w", err)
	}
	return nil
}

func (b *bench) halt() {
	if b.provider != nil {
		_ = b.provider.Process.Kill()
		_ = b.provider.Wait()
		b.provider = nil
	}
}

func (b *bench) stop() {
	b.halt()
	if b.cancel != nil {
		b.cancel()
	}
	if b.plane != nil {
		b.plane.Stop()
	}
}

// queue holds the Deployments whose status the simulated controller has to update.
var queue = make(chan client.ObjectKey, 1<<16)

// watch watches Deployments, for the simulated controller and to record what the provider
// changes.
func (b *bench) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := b.admin.Watch(ctx, &appsv1.DeploymentList{})
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for e := range w.ResultChan() {
			d, ok := e.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			b.see(d)
			if d.Status.ObservedGeneration != d.Generation {
				queue <- client.ObjectKeyFromObject(d)
			}
		}
	}
}

func (b *bench) see(d *appsv1.Deployment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, bundle := range d.Spec.Template.Annotations {
		if key := d.Namespace + "/" + d.Name + "/" + bundle; k == appconfig.Annotation(d.Labels["app.kubernetes.io/name"]) && b.patched[key].IsZero() {
			b.patched[key] = time.Now()
			select {
			case b.news <- struct{}{}:
			default:
			}
		}
	}
}

// control simulates the Deployment controller for Deployments without pods.
func (b *bench) control(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-queue:
			d := &appsv1.Deployment{}
			if b.admin.Get(ctx, key, d) != nil {
				continue
			}
			d.Status.ObservedGeneration = d.Generation
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			}
			if err := b.admin.Status().Update(ctx, d); kerrors.IsConflict(err) {
				queue <- key
			}
		}
	}
}

// deployment returns a Deployment of an application with zero replicas.
func deployment(namespace, name, application string) *appsv1.Deployment {
	labels := map[string]string{"app": name, "app.kubernetes.io/name": application}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{configv1.AllowAnnotation: application}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/app:v1", Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
				Env:            []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}, {Name: "C", Value: "c"}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
			}}}},
		},
	}
}

func appConfig(namespace, name, title string) *configv1.AppConfig {
	a := &configv1.AppConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	a.Spec.ForProvider = configv1.AppConfigParameters{Application: name, Config: map[string]string{"TITLE": title, "OPTIONS": "a,b,c", "GREETING": "Hello from {{ .Namespace }}"}}
	return a
}

// create creates objects, 16 at a time.
func (b *bench) create(ctx context.Context, objects []client.Object) error {
	const workers = 16
	work, errs := make(chan client.Object), make(chan error, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for o := range work {
				if err := b.admin.Create(ctx, o); err != nil {
					errs <- fmt.Errorf("cannot create %s/%s: %w", o.GetNamespace(), o.GetName(), err)
					return
				}
			}
		})
	}
	for _, o := range objects {
		select {
		case work <- o:
		case err := <-errs:
			return err
		}
	}
	close(work)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// edit sets the title of an AppConfig and retries on conflicts. It returns the time of the
// successful request, and the name of the bundle that the provider must create.
func (b *bench) edit(ctx context.Context, namespace, name, title string) (time.Time, string, error) {
	for {
		a := &configv1.AppConfig{}
		if err := b.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, a); err != nil {
			return time.Time{}, "", fmt.Errorf("cannot get AppConfig %s/%s: %w", namespace, name, err)
		}
		a.Spec.ForProvider.Config["TITLE"] = title
		began := time.Now()
		err := b.admin.Update(ctx, a)
		if kerrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return time.Time{}, "", fmt.Errorf("cannot update AppConfig %s/%s: %w", namespace, name, err)
		}
		c, problem := appconfig.Render(&a.Spec.ForProvider, namespace, nil)
		if problem != nil {
			return time.Time{}, "", errors.New(problem.Message)
		}
		return began, c.Name(name, nil), nil
	}
}

// patience is the timeout of until.
const patience = 10 * time.Minute

// until waits until holds returns true. It calls holds each time a Deployment was changed, and
// four times a second.
func (b *bench) until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait until %s: %w", what, ctx.Err())
		case <-b.news:
		case <-tick.C:
		}
	}
	return nil
}

// ready returns the number of AppConfigs that are Ready with their newest generation, or -1 if
// they cannot be listed.
func (b *bench) ready(ctx context.Context) int {
	l := &configv1.AppConfigList{}
	if b.admin.List(ctx, l) != nil {
		return -1
	}
	n := 0
	for i := range l.Items {
		if c := l.Items[i].GetCondition("Ready"); c.Status == corev1.ConditionTrue && c.ObservedGeneration == l.Items[i].Generation && l.Items[i].Status.AtProvider.Pending == "" {
			n++
		}
	}
	return n
}

// when returns the time at which a Deployment was first observed with a bundle, or the zero time.
func (b *bench) when(namespace, name, bundle string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.patched[namespace+"/"+name+"/"+bundle]
}

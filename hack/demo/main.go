// Command demo applies an example claim on the cluster of KUBECONFIG and waits until it is ready.
// It prints the states of the components as they change.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

type cli struct {
	Claim   string        `help:"The claim to file."                            required:"" type:"existingfile"`
	Timeout time.Duration `help:"How long to wait until the claim is ready."    default:"5m"`
}

func main() {
	args := &cli{}
	k := kong.Parse(args, kong.Description("Files a claim and waits until it is ready."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, args.Timeout)
	defer cancel()
	if err := args.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		k.Exit(1)
	}
}

func (c *cli) run(ctx context.Context, out io.Writer) error {
	claim, err := readClaim(c.Claim)
	if err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("cannot read KUBECONFIG: %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	gvk := claim.GroupVersionKind()
	mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(core.Discovery())).RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("cannot find %s on the cluster: are the packages installed? %w", gvk.Kind, err)
	}

	if err := ensureNamespace(ctx, core, claim.GetNamespace()); err != nil {
		return err
	}
	claims := client.Resource(mapping.Resource).Namespace(claim.GetNamespace())
	start := time.Now()
	if _, err := claims.Apply(ctx, claim.GetName(), claim, metav1.ApplyOptions{FieldManager: "storeplane-demo", Force: true}); err != nil {
		return fmt.Errorf("cannot file %s %s: %w", gvk.Kind, claim.GetName(), err)
	}
	fmt.Fprintf(out, "%s %s applied in namespace %s\n", gvk.Kind, claim.GetName(), claim.GetNamespace())
	ready, err := follow(ctx, out, claims, claim.GetName(), start)
	if err != nil {
		return err
	}
	printNext(ctx, out, core, ready, c.Claim, mapping.Resource)
	return nil
}

func readClaim(path string) (*unstructured.Unstructured, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(b, &u.Object); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return u, nil
}

// ensureNamespace creates the namespace if it does not exist, as strict as a platform team would
// have it: no object of a claim needs more than the restricted standard.
func ensureNamespace(ctx context.Context, core kubernetes.Interface, name string) error {
	_, err := core.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return nil
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := core.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot make namespace %s: %w", name, err)
	}
	return nil
}

// follow prints the states of the components as they change, until the claim is ready.
func follow(ctx context.Context, out io.Writer, claims dynamic.ResourceInterface, name string, start time.Time) (*unstructured.Unstructured, error) {
	w, err := claims.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	said := map[string]string{}
	message := "nothing was reported"
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the claim is not ready after %s: %s", time.Since(start).Round(time.Second), message)
		case ev, open := <-w.ResultChan():
			if !open {
				return nil, errors.New("the API server ended the watch: run this again")
			}
			u, ok := ev.Object.(*unstructured.Unstructured)
			if !ok || ev.Type == watch.Deleted {
				return nil, fmt.Errorf("the claim went away while it was waited for (%s)", ev.Type)
			}
			if m, _, _ := unstructured.NestedString(u.Object, "status", "message"); m != "" {
				message = m
			}
			printComponents(out, u, said, time.Since(start))
			if isReady(u) {
				fmt.Fprintf(out, "%6.1fs  ready\n", time.Since(start).Seconds())
				return u, nil
			}
		}
	}
}

func printComponents(out io.Writer, u *unstructured.Unstructured, said map[string]string, after time.Duration) {
	parts, _, _ := unstructured.NestedSlice(u.Object, "status", "components")
	for _, p := range parts {
		m, ok := p.(map[string]any)
		if !ok {
			continue
		}
		name, _ := m["name"].(string)
		text, _ := m["message"].(string)
		if ready, _ := m["ready"].(bool); ready {
			text = "ready"
		}
		if said[name] == text {
			continue
		}
		said[name] = text
		fmt.Fprintf(out, "%6.1fs  %-10s %s\n", after.Seconds(), name, text)
	}
}

// isReady reports whether the claim has a Ready condition of the current generation that is True.
func isReady(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != "Ready" {
			continue
		}
		og, _ := m["observedGeneration"].(int64)
		return m["status"] == string(metav1.ConditionTrue) && og >= u.GetGeneration()
	}
	return false
}

// printNext prints the address of the shop and what to try.
func printNext(ctx context.Context, out io.Writer, core kubernetes.Interface, u *unstructured.Unstructured, file string, res schema.GroupVersionResource) {
	ns, name := u.GetNamespace(), u.GetName()
	svc, err := core.CoreV1().Services(ns).Get(ctx, name+"-frontend-web", metav1.GetOptions{})
	if err == nil && svc.Spec.ClusterIP != "" {
		fmt.Fprintf(out, "\nThe shop: http://%s:%d/ (from this machine)\n", svc.Spec.ClusterIP, svc.Spec.Ports[0].Port)
	}
	fmt.Fprintf(out, `
What to try next, after  eval "$(go run ./test/cluster env)":
  kubectl get ecp,dbc,wa -n %[1]s
  kubectl get all -n %[1]s -l platform=%[2]s
  kubectl patch %[3]s %[2]s -n %[1]s --type merge -p '{"spec":{"backend":{"replicas":3}}}'
  kubectl delete pod --all -n %[1]s        # and watch it heal
  make render CLAIM=%[4]s CONVERGE=1
`, ns, name, res.Resource+"."+res.Group, file)
}

//go:build e2e

package platform

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"
)

// storeIsSeen buys a mug with a browser.
func storeIsSeen(ctx context.Context, n notes) error {
	if err := openStore(ctx); err != nil {
		return err
	}
	address, err := startBrowser(ctx)
	if err != nil {
		return err
	}
	t, err := openTab(ctx, address)
	if err != nil {
		return err
	}
	defer t.close()
	return buy(t, n)
}

// buy buys a mug, and checks each page and saves a picture of it.
func buy(t *tab, n notes) error {
	if err := t.open("https://" + storeHost + "/"); err != nil {
		return err
	}
	for _, page := range []struct{ name, click, title string }{
		{name: "products", title: "Products"},
		{name: "added", click: `form[action="/cart"]:has(input[value="mug"]) button`, title: "Products"},
		{name: "cart", click: `a[href="/cart"]`, title: "Cart"},
		{name: "order", click: `form[action="/orders"] button`, title: "Thank you"},
	} {
		if page.click != "" {
			if err := t.click(page.click); err != nil {
				return err
			}
		}
		var seen struct{ Title, Text, Protocol string }
		if err := t.eval(`({Title: document.title, Text: document.querySelector("main").innerText, Protocol: location.protocol})`, &seen); err != nil {
			return err
		}
		if seen.Protocol != "https:" || !strings.Contains(seen.Title+seen.Text, page.title) {
			return fmt.Errorf("page %s is %q by %s, and says:\n%s", page.name, seen.Title, seen.Protocol, seen.Text)
		}
		raw, err := t.picture()
		if err != nil {
			return err
		}
		file, err := tests.Keep("browser-"+page.name+".png", raw)
		if err != nil {
			return err
		}
		n.Addf("%q in %s", seen.Title, file)
	}
	return nil
}

// startBrowser starts a browser that finds the store at the ingress controller and accepts only its
// certificate. It returns the address of the browser's DevTools.
func startBrowser(ctx context.Context) (string, error) {
	key, err := fingerprint(certificate)
	if err != nil {
		return "", err
	}
	svc, err := cluster.Kube.CoreV1().Services(ingressNamespace).Get(ctx, "traefik", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot find the ingress controller: %w", err)
	}
	err = once.Do("browser", func() error {
		return apply(ctx, ingressNamespace, "browser/pod.yaml", map[string]string{"HOST": storeHost, "ADDRESS": svc.Spec.ClusterIP, "KEY": key})
	})
	if err != nil {
		return "", err
	}
	if err := podReady(ctx, ingressNamespace, "browser"); err != nil {
		return "", err
	}
	if err := listens(ctx); err != nil {
		return "", err
	}
	port, err := cluster.Forward(ctx, ingressNamespace, "browser", 9222)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", port), nil
}

// listens waits until the browser accepts commands. It listens on the loopback interface of its
// pod, which no probe reaches, but its log shows it.
func listens(ctx context.Context) error {
	err := wait.For(func(ctx context.Context) (bool, error) {
		logs, err := cluster.Logs(ctx, ingressNamespace)
		return strings.Contains(logs["browser/browser"], "DevTools listening on"), err
	}, wait.WithContext(ctx), wait.WithTimeout(settled), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("waited %s for the browser to listen: %w", settled, err)
	}
	return nil
}

// fingerprint returns the fingerprint of a certificate's public key in the form that the browser
// takes.
func fingerprint(cert string) (string, error) {
	block, _ := pem.Decode([]byte(cert))
	if block == nil {
		return "", errors.New("cannot read the certificate: it is not PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("cannot read the certificate: %w", err)
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}

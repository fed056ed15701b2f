package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed art/*.svg
var artFiles embed.FS

//go:embed style.css
var css string

// A page is the data of the templates. Each uses a part of it.
type page struct {
	Title    string
	Narrow   bool
	Cart     *shop.Cart // Nil if the cart is unknown.
	Products []shop.Product
	Added    *shop.Product
	Key      string
	Order    *shop.Order
	Orders   []shop.Order
	Message  string
}

var functions = template.FuncMap{
	"css":   func() template.CSS { return template.CSS(css) }, //nolint:gosec // the project's own file
	"art":   art,
	"money": money,
	"date":  func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
}

// templates holds a set for each page: the layout and its content.
var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, name := range []string{"products", "cart", "order", "orders", "error"} {
		t := template.New("").Funcs(functions)
		all[name] = template.Must(t.ParseFS(templateFiles, "templates/layout.html", "templates/"+name+".html"))
	}
	return all
}()

// art returns the picture of a product, or a parcel for a product without one.
func art(product string) template.HTML {
	svg, err := artFiles.ReadFile("art/" + product + ".svg")
	if err != nil {
		svg, _ = artFiles.ReadFile("art/parcel.svg")
	}
	return template.HTML(svg) //nolint:gosec // the project's own files; product only names one of them
}

// money formats an amount of cents.
func money(cents int64, currency string) string {
	symbol := currency + " "
	if currency == "EUR" {
		symbol = "€"
	}
	return fmt.Sprintf("%s%d.%02d", symbol, cents/100, cents%100)
}

// policy allows a page its own style sheet and nothing else: no script, no frame, and no address
// but the shop's. The style is part of the page, so that both are always of the same release, and
// its hash is part of the policy.
var policy = func() string {
	sum := sha256.Sum256([]byte(css))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

func render(w http.ResponseWriter, status int, name string, p page) error {
	// The page is rendered in memory first: a page that failed halfway must not be sent.
	var b bytes.Buffer
	if err := templates[name].ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("cannot render page %q: %w", name, err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	w.WriteHeader(status)
	// An error here means that the client disconnected.
	_, _ = b.WriteTo(w)
	return nil
}

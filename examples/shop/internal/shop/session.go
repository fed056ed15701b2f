package shop

import (
	"crypto/rand"
	"net/http"
	"regexp"
)

// SessionHeader and SessionCookie carry a visitor's session. The header takes precedence. A client
// with a session can read its cart and its orders.
const (
	SessionHeader = "X-Session"
	SessionCookie = "session"
)

// KeyHeader carries the key by which a repeated order is recognized.
const KeyHeader = "Idempotency-Key"

// token is the form of a session. A client may choose its own session, so the form is checked. The
// length prevents guesses only if the session is random, as those of NewToken are.
var token = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)

// ValidToken reports whether s may be a session or an idempotency key.
func ValidToken(s string) bool { return token.MatchString(s) }

// NewToken generates a session, an order's id or an idempotency key.
func NewToken() string { return rand.Text() }

// Session returns the session in a request, and whether it is valid.
func Session(r *http.Request) (string, bool) {
	s := r.Header.Get(SessionHeader)
	if s == "" {
		if c, err := r.Cookie(SessionCookie); err == nil {
			s = c.Value
		}
	}
	return s, ValidToken(s)
}

// SetSession stores the session in the browser.
//
// SameSite=Lax protects against forged forms: every change is a POST, PUT or DELETE, and a browser
// sends no Lax cookie with a request that another site caused. Secure is set whenever the visitor
// uses https.
func SetSession(w http.ResponseWriter, r *http.Request, session string) {
	http.SetCookie(w, &http.Cookie{
		Name:     SessionCookie,
		Value:    session,
		Path:     "/",
		MaxAge:   30 * 24 * 60 * 60,
		HttpOnly: true,
		Secure:   r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
		SameSite: http.SameSiteLaxMode,
	})
}

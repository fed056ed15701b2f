//go:build e2e

package platform

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// tab is a tab of a browser, controlled by the DevTools protocol.
type tab struct {
	conn *websocket.Conn
	last atomic.Int64
}

// openTab opens a tab of the browser with this DevTools address.
func openTab(ctx context.Context, address string) (*tab, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+address+"/json/new?about:blank", nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the browser for a tab: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the browser for a tab: %w", err)
	}
	defer res.Body.Close()
	var target struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(res.Body).Decode(&target); err != nil {
		return nil, fmt.Errorf("cannot decode the browser's tab: %w", err)
	}
	conn, _, err := websocket.DefaultDialer.DialContext(ctx, target.URL, nil) //nolint:bodyclose // Closing the connection is enough.
	if err != nil {
		return nil, fmt.Errorf("cannot reach the browser's tab: %w", err)
	}
	t := &tab{conn: conn}
	if err := t.call("Page.enable", nil, nil); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *tab) close() { _ = t.conn.Close() }

// message is a message of the protocol: an answer if it has an ID, else an event.
type message struct {
	ID     int64           `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// patient is how long a page may take.
const patient = 30 * time.Second

// read reads messages until wanted returns true for one.
func (t *tab) read(what string, wanted func(message) bool) (message, error) {
	_ = t.conn.SetReadDeadline(time.Now().Add(patient))
	for {
		var m message
		if err := t.conn.ReadJSON(&m); err != nil {
			return m, fmt.Errorf("cannot wait for the browser's %s: %w", what, err)
		}
		if wanted(m) {
			return m, nil
		}
	}
}

// call calls a method and reads its answer.
func (t *tab) call(method string, params map[string]any, answer any) error {
	id := t.last.Add(1)
	if params == nil {
		params = map[string]any{}
	}
	if err := t.conn.WriteJSON(map[string]any{"id": id, "method": method, "params": params}); err != nil {
		return fmt.Errorf("cannot tell the browser to %s: %w", method, err)
	}
	m, err := t.read("answer to "+method, func(m message) bool { return m.ID == id })
	if err != nil {
		return err
	}
	if m.Error != nil {
		return fmt.Errorf("the browser cannot %s: %s", method, m.Error.Message)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(m.Result, answer); err != nil {
		return fmt.Errorf("cannot decode the browser's answer to %s: %w", method, err)
	}
	return nil
}

// open opens an address and waits until the page is loaded.
func (t *tab) open(url string) error {
	var answer struct {
		Error string `json:"errorText"`
	}
	if err := t.call("Page.navigate", map[string]any{"url": url}, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return fmt.Errorf("the browser cannot open %s: %s", url, answer.Error)
	}
	return t.loaded()
}

func (t *tab) loaded() error {
	_, err := t.read("page", func(m message) bool { return m.Method == "Page.loadEventFired" })
	return err
}

// eval evaluates an expression in the page and decodes the result into value.
func (t *tab) eval(expression string, value any) error {
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	if err := t.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer); err != nil {
		return err
	}
	if answer.Exception != nil {
		return fmt.Errorf("cannot evaluate %s: %s", expression, answer.Exception.Text)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		return fmt.Errorf("cannot decode what %s is: %w", expression, err)
	}
	return nil
}

// click clicks on the element of a selector and waits for the page that it leads to.
func (t *tab) click(selector string) error {
	var at struct {
		X float64 `json:"x"`
		Y float64 `json:"y"`
	}
	quoted, err := json.Marshal(selector)
	if err != nil {
		return fmt.Errorf("cannot quote %s: %w", selector, err)
	}
	err = t.eval(`(() => { const e = document.querySelector(`+string(quoted)+`); e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2} })()`, &at)
	if err != nil {
		return fmt.Errorf("cannot find %s: %w", selector, err)
	}
	for _, what := range []string{"mousePressed", "mouseReleased"} {
		// The answer to the release may come after the first events of the page, so it is not
		// waited for.
		event := map[string]any{"type": what, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}
		if err := t.conn.WriteJSON(map[string]any{"id": t.last.Add(1), "method": "Input.dispatchMouseEvent", "params": event}); err != nil {
			return fmt.Errorf("cannot click on %s: %w", selector, err)
		}
	}
	if err := t.loaded(); err != nil {
		return fmt.Errorf("cannot click on %s: %w", selector, err)
	}
	return nil
}

// picture returns a screenshot of the page as PNG.
func (t *tab) picture() ([]byte, error) {
	var answer struct {
		Data string `json:"data"`
	}
	if err := t.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &answer); err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(answer.Data)
	if err != nil {
		return nil, fmt.Errorf("cannot decode the browser's picture: %w", err)
	}
	return raw, nil
}

package compose

import (
	"errors"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestClaimReads(t *testing.T) {
	req := request(t, 3, nil, nil)
	c := NewClaim(req, nil)
	type facts struct {
		Name, Namespace, Kind string
		Generation            int64
	}
	if diff := cmp.Diff(facts{"shop", "team", "WebApp", 3}, facts{c.Name(), c.Namespace(), c.Kind(), c.Generation()}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if c.Label("platform") != "" {
		t.Errorf("a label that is not there is empty")
	}
	child(child(req.GetObserved().GetComposite().GetResource(), "metadata"), "labels").Fields["platform"] = structpb.NewStringValue("store")
	if got := c.Label("platform"); got != "store" {
		t.Errorf("Label(): want store, got %q", got)
	}
	if c.Observed("web") != nil {
		t.Errorf("what is not observed is nil")
	}
}

func TestClaimSpec(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   any
		want   string
	}{
		"Fine":    {reason: "A spec that fits is read.", spec: map[string]any{"size": 3}},
		"Unknown": {reason: "Fields that this version does not know are the API server's to refuse.", spec: map[string]any{"size": 3, "colour": "red"}},
		"Missing": {reason: "A claim has a spec.", want: "spec is missing"},
		"Text":    {reason: "And it is an object.", spec: "text", want: "spec is missing"},
		"Type":    {reason: "What does not fit is named by its path, without its value.", spec: map[string]any{"size": "secret"}, want: "cannot read spec: size: must be a whole number, is a string"},
		"Nested":  {reason: "Also deeper down.", spec: map[string]any{"users": []any{map[string]any{"name": 1}}}, want: "cannot read spec: users[0].name: must be a string, is a number"},
		"Half":    {reason: "Half a server is none.", spec: map[string]any{"size": 1.5}, want: "cannot read spec: size: must be a whole number, is a number"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := map[string]any{}
			if tc.spec != nil {
				xr["spec"] = tc.spec
			}
			c := NewClaim(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: mustStruct(t, xr)}}}, nil)
			into := struct {
				Size  int32 `json:"size"`
				Users []struct {
					Name string `json:"name"`
				} `json:"users"`
			}{}
			err := c.Spec(&into)
			if got := errorText(err); got != tc.want {
				t.Errorf("%s\nSpec(): want %q, got %q", tc.reason, tc.want, got)
			}
			if err != nil && !IsInvalid(err) {
				t.Errorf("%s\nSpec(): it is the claim's error", tc.reason)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestClaimSettings(t *testing.T) {
	type settings struct {
		Registry string `json:"registry"`
		Class    string `json:"class"`
	}
	cases := map[string]struct {
		reason string
		items  []map[string]any
		want   settings
		err    string
	}{
		"None":       {reason: "Without an EnvironmentConfig the defaults hold.", want: settings{Registry: "default"}},
		"Empty":      {reason: "An empty one changes nothing.", items: []map[string]any{{"kind": "EnvironmentConfig"}}, want: settings{Registry: "default"}},
		"Some":       {reason: "What it says replaces the default, what it does not say stays.", items: []map[string]any{{"data": map[string]any{"class": "nginx"}}}, want: settings{Registry: "default", Class: "nginx"}},
		"OtherKeys":  {reason: "Keys for others are ignored.", items: []map[string]any{{"data": map[string]any{"team": 7}}}, want: settings{Registry: "default"}},
		"WrongType":  {reason: "Nonsense is named.", items: []map[string]any{{"data": map[string]any{"registry": 7}}}, want: settings{Registry: "default"}, err: "cannot read EnvironmentConfig storeplane: data.registry: must be a string, is a number"},
		"NullIsNone": {reason: "Null says nothing.", items: []map[string]any{{"data": map[string]any{"registry": nil}}}, want: settings{Registry: "default"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, nil, nil)
			rs := &fnv1.Resources{}
			for _, i := range tc.items {
				rs.Items = append(rs.Items, &fnv1.Resource{Resource: mustStruct(t, i)})
			}
			req.RequiredResources = map[string]*fnv1.Resources{SettingsRequirement: rs}
			got := settings{Registry: "default"}
			err := NewClaim(req, nil).Settings(func(d Data) (any, error) { return got, d.Decode(&got) })
			if errorText(err) != tc.err {
				t.Errorf("%s\nSettings(): want error %q, got %q", tc.reason, tc.err, errorText(err))
			}
			if err != nil && !IsInvalid(err) {
				t.Errorf("%s\nSettings(): a user can act on it", tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); err == nil && diff != "" {
				t.Errorf("%s\nSettings(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestErrorsDoNotFlap: of several errors the same one is reported in each pass, or the claim's
// conditions would change forever.
func TestErrorsDoNotFlap(t *testing.T) {
	req := request(t, 1, nil, nil)
	spec := child(req.GetObserved().GetComposite().GetResource(), "spec")
	data := map[string]any{}
	for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
		spec.Fields[k] = structpb.NewBoolValue(true)
		data[k] = true
	}
	req.RequiredResources = map[string]*fnv1.Resources{SettingsRequirement: {Items: []*fnv1.Resource{{Resource: mustStruct(t, map[string]any{"data": data})}}}}
	type fields struct {
		A string `json:"a"`
		B string `json:"b"`
		C string `json:"c"`
		D string `json:"d"`
		E string `json:"e"`
		F string `json:"f"`
	}
	read := map[string]func(*Claim) error{
		"Spec":     func(c *Claim) error { return c.Spec(&fields{}) },
		"Settings": func(c *Claim) error { return c.Settings(func(d Data) (any, error) { return nil, d.Decode(&fields{}) }) },
	}
	for name, f := range read {
		t.Run(name, func(t *testing.T) {
			first := errorText(f(NewClaim(req, nil)))
			for range 50 {
				if again := errorText(f(NewClaim(req, nil))); again != first {
					t.Fatalf("The same input gave two errors:\n%s\n%s", first, again)
				}
			}
		})
	}
}

func TestReadObserved(t *testing.T) {
	obj := mustStruct(t, map[string]any{"kind": "StatefulSet", "spec": map[string]any{"replicas": "three"}})
	c := NewClaim(request(t, 1, nil, map[string]*structpb.Struct{"db": obj}), nil)
	into := struct {
		Spec struct {
			Replicas int32 `json:"replicas"`
		} `json:"spec"`
	}{}

	if found, err := c.ReadObserved("none", &into); found || err != nil {
		t.Errorf("What is not observed is neither found nor an error: got %t, %v", found, err)
	}
	_, err := c.ReadObserved("db", &into)
	if want := "cannot read the observed StatefulSet of component db: spec.replicas: must be a whole number, is a string"; errorText(err) != want {
		t.Errorf("ReadObserved(): want %q, got %q", want, errorText(err))
	}
	if IsInvalid(err) {
		t.Errorf("An object that cannot be read is not the claim's error")
	}
}

func TestClaimSecret(t *testing.T) {
	errDraw := errors.New("no entropy")
	draws := 0
	drawn := func(Source) (string, error) { draws++; return "drawn", nil }

	noData := secret(t, "db", nil)
	delete(noData.Fields, "data")
	torn := secret(t, "db", nil)
	child(torn, "data").Fields["password"] = structpb.NewStringValue("%%%")
	number := secret(t, "db", nil)
	child(number, "data").Fields["password"] = structpb.NewNumberValue(7)
	const lost = "Secret shop-db has lost its key password: put it back, or delete the Secret if nothing uses it any more"

	cases := map[string]struct {
		reason   string
		observed *structpb.Struct
		draw     func(Source) (string, error)
		want     string
		draws    int
		err      string
	}{
		"NotObserved": {reason: "It is drawn while there is no Secret.", draw: drawn, want: "drawn", draws: 1},
		"DrawFails":   {reason: "An error of drawing is passed on.", draw: func(Source) (string, error) { draws++; return "", errDraw }, draws: 1, err: "no entropy"},
		"Observed":    {reason: "It is read back from the Secret ever after.", observed: secret(t, "db", map[string]string{"password": "kept"}), draw: drawn, want: "kept"},
		"Binary":      {reason: "Whatever it is.", observed: secret(t, "db", map[string]string{"password": "\x00\xff\n'"}), draw: drawn, want: "\x00\xff\n'"},
		"KeyGone":     {reason: "A lost key is never drawn again: whoever uses the old one would be locked out.", observed: secret(t, "db", map[string]string{"other": "x"}), draw: drawn, err: lost},
		"KeyEmpty":    {reason: "An empty password is a lost one.", observed: secret(t, "db", map[string]string{"password": ""}), draw: drawn, err: lost},
		"NoData":      {reason: "So it is without any data.", observed: noData, draw: drawn, err: lost},
		"NotBase64":   {reason: "And with data that is none.", observed: torn, draw: drawn, err: lost},
		"NotText":     {reason: "Or of another type.", observed: number, draw: drawn, err: lost},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			draws = 0
			observed := map[string]*structpb.Struct{}
			if tc.observed != nil {
				observed["db"] = tc.observed
			}
			got, err := NewClaim(request(t, 1, nil, observed), nil).Secret("db", "password", tc.draw)
			if errorText(err) != tc.err || got != tc.want {
				t.Errorf("%s\nSecret(): want %q, error %q; got %q, error %q", tc.reason, tc.want, tc.err, got, errorText(err))
			}
			if draws != tc.draws {
				t.Errorf("%s\nSecret(): want %d draws, got %d", tc.reason, tc.draws, draws)
			}
			if tc.err == lost && !IsInvalid(err) {
				t.Errorf("%s\nSecret(): a user can act on it", tc.reason)
			}
		})
	}
	if _, err := NewClaim(request(t, 1, nil, nil), nil).Secret("db", "password", func(Source) (string, error) { return "", errDraw }); !cmp.Equal(err, errDraw, cmpopts.EquateErrors()) {
		t.Errorf("The error of drawing can be told: got %v", err)
	}
}

// TestClaimRotatable: a value that can be replaced is generated again when it is lost, in whichever
// way.
func TestClaimRotatable(t *testing.T) {
	errDraw := errors.New("no entropy")
	noData := secret(t, "db", nil)
	delete(noData.Fields, "data")
	torn := secret(t, "db", nil)
	child(torn, "data").Fields["password"] = structpb.NewStringValue("%%%")
	kept := secret(t, "db", map[string]string{"password": "kept"})

	cases := map[string]struct {
		reason   string
		observed *structpb.Struct
		source   Source
		draw     func(Source) (string, error)
		want     string
		err      string
	}{
		"NotObserved": {reason: "It is drawn while there is no Secret.", want: "drawn"},
		"Observed":    {reason: "It is read back as long as it is there.", observed: kept, want: "kept"},
		"Binary":      {reason: "Whatever it is.", observed: secret(t, "db", map[string]string{"password": "\x00\xff\n'"}), want: "\x00\xff\n'"},
		"KeyGone":     {reason: "A key that was taken out is drawn again.", observed: secret(t, "db", map[string]string{"other": "x"}), want: "drawn"},
		"KeyEmpty":    {reason: "So is one that was emptied.", observed: secret(t, "db", map[string]string{"password": ""}), want: "drawn"},
		"NoData":      {reason: "And one of a Secret without any.", observed: noData, want: "drawn"},
		"NotBase64":   {reason: "And what cannot be read.", observed: torn, want: "drawn"},
		"DrawFails":   {reason: "An error of drawing is passed on.", draw: func(Source) (string, error) { return "", errDraw }, err: "no entropy"},
		"NotDrawn":    {reason: "Nothing is drawn in vain.", observed: kept, draw: func(Source) (string, error) { return "", errDraw }, want: "kept"},
		"Review":      {reason: "What is read by people shows none.", observed: kept, source: ReviewSource{}, draw: Source.Password, want: "generated-at-first-apply"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			draw := tc.draw
			if draw == nil {
				draw = func(Source) (string, error) { return "drawn", nil }
			}
			observed := map[string]*structpb.Struct{}
			if tc.observed != nil {
				observed["db"] = tc.observed
			}
			got, err := NewClaim(request(t, 1, nil, observed), tc.source).Rotatable("db", "password", draw)
			if got != tc.want || errorText(err) != tc.err {
				t.Errorf("%s\nRotatable(): want %q, error %q; got %q, error %q", tc.reason, tc.want, tc.err, got, errorText(err))
			}
		})
	}
}

// TestClaimSource: a review has no time, and only a review reports that it is one.
func TestClaimSource(t *testing.T) {
	review, system := NewClaim(request(t, 1, nil, nil), ReviewSource{}), NewClaim(request(t, 1, nil, nil), SystemSource{})
	if !review.IsReview() || !review.Now().IsZero() {
		t.Errorf("A review is at no time, got %v", review.Now())
	}
	before := time.Now()
	if got := system.Now(); system.IsReview() || got.Before(before) || got.After(time.Now()) {
		t.Errorf("Else it is now, got %v", got)
	}
}

// TestClaimSecretInReview: a review contains no secret, whatever is observed, and is not refused
// for a key that is missing from an existing Secret.
func TestClaimSecretInReview(t *testing.T) {
	cases := map[string]struct {
		reason   string
		observed *structpb.Struct
	}{
		"NotObserved": {reason: "There is none yet."},
		"Observed":    {reason: "One exists.", observed: secret(t, "db", map[string]string{"password": "kept"})},
		"KeyGone":     {reason: "One exists that has lost the key.", observed: secret(t, "db", map[string]string{"other": "x"})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]*structpb.Struct{}
			if tc.observed != nil {
				observed["db"] = tc.observed
			}
			got, err := NewClaim(request(t, 1, nil, observed), ReviewSource{}).Secret("db", "password", Source.Password)
			if want := "generated-at-first-apply"; err != nil || got != want {
				t.Errorf("%s\nSecret(): want %q, got %q, error %v", tc.reason, want, got, err)
			}
		})
	}
}

func TestOwnedByOther(t *testing.T) {
	const (
		crossplane = "apiextensions.crossplane.io/composed/0123456789abcdef"
		autoscaler = "kube-controller-manager"
	)
	entry := func(manager, subresource string, fields map[string]any) map[string]any {
		e := map[string]any{"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
		if subresource != "" {
			e["subresource"] = subresource
		}
		return e
	}
	replicas := map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}
	template := map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}
	statusReplicas := map[string]any{"f:status": map[string]any{"f:replicas": map[string]any{}}}
	ports := map[string]any{"f:spec": map[string]any{"f:ports": map[string]any{`k:{"port":80,"protocol":"TCP"}`: map[string]any{".": map[string]any{}, "f:name": map[string]any{}}}}}

	cases := map[string]struct {
		reason  string
		missing bool
		managed []any
		path    []string // f:spec, f:replicas unless given
		want    bool
	}{
		"NotObserved":     {reason: "What does not exist has no manager.", missing: true},
		"NoManagedFields": {reason: "Without managed fields, as a file may be, no other manager is known."},
		"CrossplaneOnly":  {reason: "Crossplane applies what it composes under a name of its own for each claim.", managed: []any{entry(crossplane, "", replicas)}},
		"Autoscaler":      {reason: "An autoscaler writes through the subresource.", managed: []any{entry(crossplane, "", template), entry(autoscaler, "scale", replicas)}, want: true},
		"Both":            {reason: "Two may own a field of one value: then another does too.", managed: []any{entry(crossplane, "", replicas), entry(autoscaler, "scale", replicas)}, want: true},
		"AnyOrder":        {reason: "In whatever order they are.", managed: []any{entry(autoscaler, "scale", replicas), entry(crossplane, "", template)}, want: true},
		"ByHand":          {reason: "Who it is does not matter.", managed: []any{entry(crossplane, "", template), entry("kubectl", "scale", replicas)}, want: true},
		"OtherField":      {reason: "The Deployment's controller writes the status, which has a field of the same name.", managed: []any{entry(crossplane, "", replicas), entry(autoscaler, "status", statusReplicas)}},
		"Neighbour":       {reason: "A neighbour of the field is another field.", managed: []any{entry(crossplane, "", replicas), entry("kubectl-edit", "", template)}},
		"LaterEntry": {
			reason:  "Whoever owns nothing of it does not hide the one who does.",
			managed: []any{entry("kubectl-edit", "", template), entry(autoscaler, "status", statusReplicas), entry(autoscaler, "scale", replicas)},
			want:    true,
		},
		"OtherOfCrossplane": {reason: "Another part of Crossplane is another manager.", managed: []any{entry("apiextensions.crossplane.io/composite", "", replicas)}, want: true},
		"NoName":            {reason: "So is one without a name.", managed: []any{map[string]any{"fieldsV1": replicas}}, want: true},
		"ListEntry": {
			reason:  "An entry of a list has a path too.",
			managed: []any{entry(crossplane, "", template), entry("kubectl-edit", "", ports)},
			path:    []string{"f:spec", "f:ports", `k:{"port":80,"protocol":"TCP"}`},
			want:    true,
		},
		"OtherListEntry": {reason: "And another entry has another one.", managed: []any{entry("kubectl-edit", "", ports)}, path: []string{"f:spec", "f:ports", `k:{"port":81,"protocol":"TCP"}`}},
		"Parent":         {reason: "Who owns a field is known of what holds it.", managed: []any{entry(autoscaler, "scale", replicas)}, path: []string{"f:spec"}, want: true},
		"TooDeep":        {reason: "Nothing is below a field that holds nothing.", managed: []any{entry(autoscaler, "scale", replicas)}, path: []string{"f:spec", "f:replicas", "f:x"}},
		"Unreadable":     {reason: "What is no entry owns nothing.", managed: []any{"many", map[string]any{}, entry(autoscaler, "", nil), map[string]any{"manager": "x", "fieldsV1": "f:spec"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			meta := map[string]any{"name": "shop-web"}
			if tc.managed != nil {
				meta["managedFields"] = tc.managed
			}
			observed := map[string]*structpb.Struct{}
			if !tc.missing {
				observed["web"] = mustStruct(t, map[string]any{"kind": "Deployment", "metadata": meta})
			}
			path := tc.path
			if path == nil {
				path = []string{"f:spec", "f:replicas"}
			}
			if got := NewClaim(request(t, 1, nil, observed), nil).OwnedByOther("web", path...); got != tc.want {
				t.Errorf("%s\nOwnedByOther(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRandom(t *testing.T) {
	seen := map[string]bool{}
	counts := map[rune]int{}
	for range 500 {
		p, err := SystemSource{}.Password()
		if err != nil {
			t.Fatal(err)
		}
		if len(p) != 32 || strings.Trim(p, alphabet) != "" {
			t.Fatalf("want 32 letters and digits, got %q", p)
		}
		if seen[p] {
			t.Fatalf("drawn twice: %s", p)
		}
		seen[p] = true
		for _, r := range p {
			counts[r]++
		}
	}
	// 16000 characters over 62 are 258 each, with a standard deviation of 16. One in a billion runs
	// is six times that away.
	for _, r := range alphabet {
		if counts[r] < 150 || counts[r] > 370 {
			t.Errorf("%c was drawn %d times of 16000: some characters are favoured", r, counts[r])
		}
	}
	a, _ := ReviewSource{}.Password()
	b, _ := ReviewSource{}.Password()
	if a != b || a != "generated-at-first-apply" {
		t.Errorf("a review shows the same placeholder each time: got %q, %q", a, b)
	}
}

func TestIsInvalid(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Nil":     {reason: "No error is not invalid."},
		"Invalid": {reason: "The claim's error is.", err: Invalidf("size is %d", 11), want: true},
		"Wrapped": {reason: "Also inside others.", err: errors.Join(errors.New("x"), Invalidf("y")), want: true},
		"Other":   {reason: "Ours is not.", err: errors.New("x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsInvalid(tc.err); got != tc.want {
				t.Errorf("%s\nIsInvalid(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
	if got := Invalidf("size must be %d to %d", 1, 10).Error(); got != "size must be 1 to 10" {
		t.Errorf("Invalidf(): got %q", got)
	}
}

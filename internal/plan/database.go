package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/text"
)

// engine is what the effects on servers depend on.
type engine struct {
	// pause is the longest pause of writes, in seconds, of a planned switchover: what
	// docs/databasecluster.md and docs/mysql.md promise.
	pause int

	// joinPauses is true if writes also pause when a server joins or leaves.
	joinPauses bool

	// others are the servers that are not the primary, and order is the order in which the servers of a
	// cluster stop that is hibernated.
	others, order string
}

// engines are those of a DatabaseCluster, by the component label of their servers.
var engines = map[string]engine{
	string(appsv1.PostgreSQL): {pause: 3, others: "standbys", order: "stop, the primary last"},
	string(appsv1.MySQL):      {pause: 3, joinPauses: true, others: "replicas", order: "stop together"},
}

// engine returns the engine of the servers that an object belongs to.
func (p pair) engine() engine { return engines[p.part()] }

// pauses adds the pause of writes when a server joins or leaves to an effect, if there is one.
func (e engine) pauses(f Effect, joinsOrLeaves string) Effect {
	if !e.joinPauses {
		return f
	}
	f.Message += fmt.Sprintf(". Writes pause for up to %d s as each server %s", e.pause, joinsOrLeaves)
	f.Interrupts, f.MaxPauseSeconds = true, e.pause
	return f
}

// statefulSet returns the effects on the servers of a database, or on the server of its backup
// volume.
func (f *forecast) statefulSet(p pair) []Effect {
	if _, ok := engines[p.part()]; ok {
		return f.servers(p)
	}
	switch p.part() {
	case label.ComponentRepository, label.ComponentNamedClaim:
		return f.repository(p)
	}
	return nil // The server of the volume that a database is restored from.
}

// repository returns the effects on the server of the backup volume. PostgreSQL retains WAL while
// that server is unavailable.
func (f *forecast) repository(p pair) []Effect {
	switch {
	case p.Action == Delete && keepsVolumes(p.before):
		return []Effect{p.effect(Keeps, "%s is deleted; the volume with its backups stays", p.Object)}
	case p.Action == Delete:
		e := p.effect(Loses, "%s is deleted, and the backups on its volume with it", p.Object)
		e.Destroys, e.Irreversible = true, true
		return []Effect{e}
	case p.Action == Update && p.touches("spec.template") && replicasOf(p.after) > 0:
		e := p.effect(Restarts, "restarts the server of the backups' volume: archiving waits, and nothing is lost")
		e.Pods = 1
		return []Effect{e}
	}
	return nil
}

// servers returns the effects on the servers of a database.
func (f *forecast) servers(p pair) []Effect {
	was, is := replicasOf(p.before), replicasOf(p.after)
	database := "DatabaseCluster " + p.Owner.Name
	switch {
	case p.Action == Create:
		return nil
	case p.Action == Delete && keepsVolumes(p.before):
		stop := p.effect(Stops, "stops %s of %s", text.Count(was, "server"), database)
		stop.Pods, stop.Interrupts = was, true
		return []Effect{stop, p.effect(Keeps, "the volumes of %s stay, and a claim of its name finds them", database)}
	case p.Action == Delete:
		stop := p.effect(Stops, "stops %s of %s", text.Count(was, "server"), database)
		stop.Pods, stop.Interrupts = was, true
		lose := p.effect(Loses, "the data of %s is deleted with its volumes", database)
		lose.Destroys, lose.Irreversible = true, true
		return []Effect{stop, lose}
	case is == 0 && was > 0:
		e := p.effect(Stops, "hibernates %s: %s %s, and the volumes stay", database, text.Count(was, "server"), p.engine().order)
		e.Pods, e.Interrupts = was, true
		return []Effect{e}
	case is > 0 && was == 0:
		return []Effect{p.effect(Starts, "wakes %s of %s", text.Count(is, "server"), database)}
	}
	var out []Effect
	if is > was {
		e := p.effect(Copies, "copies the data of %s to %s; how much that is cannot be known here", database, text.Count(is-was, "new server"))
		e.Unknown = true
		out = append(out, p.engine().pauses(e, "joins"))
	}
	if is < was {
		out = append(out, f.removed(p, was, is)...)
	}
	switch {
	case !p.touches("spec.template"):
	case is > 1:
		// New servers copy the data first and then count: the primary hands over to one of them.
		out = append(out, f.replaced(p, min(was, is))...)
	default:
		e := p.effect(Restarts, "replaces the only server of %s: nothing reads or writes until it has started", database)
		e.Pods, e.Interrupts = 1, true
		out = append(out, e)
	}
	return append(out, f.retention(p)...)
}

// retention returns the effect of a changed retention policy by which deleting the claim deletes
// its data.
func (f *forecast) retention(p pair) []Effect {
	turned := p.field("spec.persistentVolumeClaimRetentionPolicy.whenDeleted")
	if turned == nil || turned.After != "Delete" {
		return nil
	}
	e := p.effect(Unprotects, "deleting DatabaseCluster %s deletes its data from then on", p.Owner.Name)
	e.Warning = true
	return []Effect{e}
}

// removed returns the effects of removing the last servers. Their volumes stay.
func (f *forecast) removed(p pair, was, is int) []Effect {
	e := p.effect(Stops, "removes %s of DatabaseCluster %s: connections to it break; the volumes stay", text.Count(was-is, "server"), p.Owner.Name)
	e.Pods, e.Interrupts = was-is, true
	out := []Effect{p.engine().pauses(e, "leaves")}
	switch primary := f.primaryOf(p.Object.Name); {
	case primary == "":
		e := p.switchover("the primary hands over if it is one of the servers that are removed")
		e.Unknown = true
		out = append(out, e)
	case int(instance.Ordinal(primary)) >= is:
		out = append(out, p.switchover("%s hands over before it is removed", primary))
	}
	return out
}

// replaced returns the effects of replacing n servers: standbys first, then the primary hands over
// and is replaced last.
func (f *forecast) replaced(p pair, n int) []Effect {
	database := "DatabaseCluster " + p.Owner.Name
	how := "replaces the " + text.Count(n, "server") + " of " + database + " one at a time, " + p.engine().others + " first"
	if n == 1 {
		how = "replaces the server of " + database + " once the new ones follow it"
	}
	e := p.effect(Restarts, "%s: each connection breaks once", how)
	e.Pods = n
	return []Effect{p.engine().pauses(e, "leaves and joins"), p.switchover("the primary of %s hands over before it stops", database)}
}

// restarted returns the effect of restarting PostgreSQL in n servers in place: standbys first, then
// the primary, which does not hand over (restart of internal/instance/manager).
func (f *forecast) restarted(p pair, n int, parameters []string) Effect {
	how := "restarts PostgreSQL of the " + text.Count(n, "server") + " of DatabaseCluster " + p.Owner.Name + " one at a time, standbys first"
	if n == 1 {
		how = "restarts PostgreSQL of the only server of DatabaseCluster " + p.Owner.Name
	}
	e := p.effect(Restarts, "%s, for %s: nothing is written until the primary has started again", how, strings.Join(parameters, ", "))
	e.Pods, e.Interrupts = n, true
	return e
}

func (p pair) switchover(format string, args ...any) Effect {
	pause := p.engine().pause
	e := p.effect(SwitchesOver, format+": writes pause for up to %d s", append(args, pause)...)
	e.Interrupts, e.MaxPauseSeconds = true, pause
	return e
}

// primaryOf returns the primary of a StatefulSet's servers, as they report it, or "".
func (f *forecast) primaryOf(set string) string {
	o, ok := f.had[key{name: instance.StatusName(set), GroupKind: configMapKind}]
	if !ok {
		return ""
	}
	text, _, _ := unstructured.NestedString(o.live.Object, "data", instance.ClusterKey)
	var c instance.Cluster
	_ = json.Unmarshal([]byte(text), &c)
	return c.Primary
}

// configMap returns the effects of the ConfigMap that configures the instance managers.
func (f *forecast) configMap(p pair) []Effect {
	desiredOf := func(u *unstructured.Unstructured) *instance.Desired {
		if u == nil {
			return nil
		}
		text, ok, _ := unstructured.NestedString(u.Object, "data", instance.DesiredKey)
		d := &instance.Desired{}
		if !ok || json.Unmarshal([]byte(text), d) != nil {
			return nil
		}
		return d
	}
	was, is := desiredOf(p.before), desiredOf(p.after)
	if was == nil || is == nil {
		return nil
	}
	out := slices.Concat(f.volumes(p, was, is), f.users(p, was, is))
	if was.Hibernated || is.Hibernated {
		return out // Hibernated servers start with the new values.
	}
	return slices.Concat(f.parameters(p, was, is), out, f.plain(p))
}

// plain returns the effect of refusing connections without TLS, by the line of pg_hba.conf for all
// users.
func (f *forecast) plain(p pair) []Effect {
	const line, encrypted = "- host all all all scram-sha-256", "- hostssl all all all scram-sha-256"
	has := func(u *unstructured.Unstructured, text string) bool {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		return strings.Contains(data[instance.PatroniFile], text)
	}
	if !has(p.before, line) || !has(p.after, encrypted) {
		return nil
	}
	e := p.effect(Reroutes, "DatabaseCluster %s refuses connections without TLS from then on", p.Owner.Name)
	e.Interrupts = true
	return []Effect{e}
}

// parameters returns the effects of parameters that servers reload, or restart for in place. Servers of
// engine mysql do not restart in place: they are replaced, or reload.
func (f *forecast) parameters(p pair, was, is *instance.Desired) []Effect {
	var reload, restart, unknown []string
	for _, k := range keysOf(was.Parameters, is.Parameters) {
		before, had := was.Parameters[k]
		after, has := is.Parameters[k]
		switch {
		case had == has && before == after:
		case p.part() == string(appsv1.MySQL):
			if !f.isReplaced(p) {
				reload = append(reload, k)
			}
		case needsRestart[k]:
			restart = append(restart, k)
		case strings.Contains(k, "."):
			unknown = append(unknown, k)
		default:
			reload = append(reload, k)
		}
	}
	var out []Effect
	if len(reload) > 0 {
		out = append(out, p.effect(Reloads, "the servers of DatabaseCluster %s reload %s", p.Owner.Name, strings.Join(reload, ", ")))
	}
	if len(unknown) > 0 {
		e := p.effect(Restarts, "the servers of DatabaseCluster %s may have to restart for %s: only the extension knows", p.Owner.Name, strings.Join(unknown, ", "))
		e.Unknown, e.Interrupts = true, true
		out = append(out, e)
	}
	// Servers that are replaced anyway start with the new values.
	if len(restart) == 0 || f.isReplaced(p) {
		return out
	}
	return append(out, f.restarted(p, int(min(was.Size, is.Size)), restart))
}

// isReplaced reports whether the servers that a ConfigMap configures are replaced too.
func (f *forecast) isReplaced(p pair) bool {
	return slices.ContainsFunc(f.pairs, func(o pair) bool {
		return o.Object.Kind == "StatefulSet" && o.Object.Name == p.Object.Name && o.touches("spec.template")
	})
}

// volumes returns the effects of volumes that grow.
func (f *forecast) volumes(p pair, was, is *instance.Desired) []Effect {
	var out []Effect
	grow := func(format string, args ...any) {
		e := p.effect(Grows, format+": it cannot shrink again", args...)
		e.Irreversible = true
		out = append(out, e)
	}
	if was.Storage != is.Storage {
		grow("each volume of DatabaseCluster %s grows from %s to %s, online", p.Owner.Name, was.Storage, is.Storage)
	}
	if was.Repository != nil && is.Repository != nil && was.Repository.Storage != is.Repository.Storage {
		grow("the volume of the backups of DatabaseCluster %s grows from %s to %s, online", p.Owner.Name, was.Repository.Storage, is.Repository.Storage)
	}
	return out
}

// users returns the effects of users that are added or removed, and of databases that are removed
// from the claim. No database is dropped.
func (f *forecast) users(p pair, was, is *instance.Desired) []Effect {
	var out []Effect
	for _, u := range is.Users {
		if !slices.Contains(was.Users, u) {
			out = append(out, p.effect(Generates, "DatabaseCluster %s has a user %s", p.Owner.Name, u))
		}
	}
	for _, u := range was.Users {
		if !slices.Contains(is.Users, u) {
			e := p.effect(Stops, "user %s of DatabaseCluster %s cannot log in any more; what it owns stays", u, p.Owner.Name)
			e.Interrupts = true
			out = append(out, e)
		}
	}
	names := func(all []instance.Database) map[string]bool {
		out := map[string]bool{}
		for _, d := range all {
			out[d.Name] = true
		}
		return out
	}
	before, after := names(was.Databases), names(is.Databases)
	for _, d := range slices.Sorted(maps.Keys(before)) {
		if !after[d] {
			out = append(out, p.effect(Keeps, "database %s of DatabaseCluster %s stays, though the claim does not name it any more", d, p.Owner.Name))
		}
	}
	return out
}

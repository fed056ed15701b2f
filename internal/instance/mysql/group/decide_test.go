package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/gtid"
)

const groupName = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func set(t *testing.T, text string) gtid.Set {
	t.Helper()
	if text == "" {
		return gtid.Set{}
	}
	s, err := gtid.Parse(strings.ReplaceAll(text, "#", groupName))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ordinalOf(pod string) int {
	var n int
	_, _ = fmt.Sscanf(pod, "db-%d", &n)
	return n
}

// situation describes servers, one a letter: - does not answer, e empty, c an unfinished copy, s
// starting with data, o offline, r recovering, S secondary, P primary, E failed, and V a primary
// that still shows the others as they were.
func situation(t *testing.T, servers string, transactions ...string) Cluster {
	t.Helper()
	c := Cluster{
		Pod: "db-0", Address: "db-0:3306", Size: len(servers), Ordinal: ordinalOf, Annotation: "lead-with=<volume claim>@x",
		Reports: map[string]Report{},
		Record:  Record{Name: groupName, Epoch: 1, Founder: "db-0", Confirmed: true, Members: map[string]string{}},
	}
	var view []Member
	for n, letter := range servers {
		pod := fmt.Sprintf("db-%d", n)
		c.Volumes = append(c.Volumes, Volume{Pod: pod, Claim: "data-" + pod, UID: "uid-" + pod})
		c.Record.Members[pod] = "uid-" + pod
		states := map[rune]State{'r': Recovering, 'S': Online, 'P': Online, 'V': Online}
		if state, in := states[letter]; in {
			view = append(view, Member{Server: "uuid-" + pod, Address: pod + ":3306", State: state, Primary: letter == 'P'})
		}
	}
	for n, letter := range servers {
		pod := fmt.Sprintf("db-%d", n)
		r := Report{Pod: pod, Claim: "uid-" + pod, Data: Whole, Running: true, Server: "uuid-" + pod, Group: groupName, State: Offline}
		if n < len(transactions) {
			r.Transactions = set(t, transactions[n])
		}
		switch letter {
		case '-':
			continue
		case 'e':
			r = Report{Pod: pod, Claim: r.Claim, Data: Empty}
		case 'c':
			r.Data = Copy
		case 's':
			r = Report{Pod: pod, Claim: r.Claim, Data: Whole}
		case 'r':
			r.State, r.View, r.Members = Recovering, "2", view
		case 'S', 'P':
			r.State, r.View, r.Members, r.Primary = Online, "2", view, letter == 'P'
		case 'V':
			r.State, r.View, r.Primary = Online, "1", true
			for n := range servers {
				r.Members = append(r.Members, Member{Server: fmt.Sprintf("uuid-db-%d", n), State: Online})
			}
		case 'E':
			r.State = Failed
		}
		c.Reports[pod] = r
	}
	return c
}

func TestDecide(t *testing.T) {
	const all = "#:1-9"
	fresh := func(c *Cluster) { c.Record = Record{} }
	kept := func(c *Cluster) {
		fresh(c)
		for i := range c.Volumes {
			c.Volumes[i].Kept = true
		}
	}
	filled := func(c *Cluster) { fresh(c); c.Restoring = true }
	only := func(pods ...string) func(*Cluster) {
		return func(c *Cluster) {
			for pod := range c.Record.Members {
				if !slices.Contains(pods, pod) {
					delete(c.Record.Members, pod)
				}
			}
		}
	}
	serving := func(c *Cluster) { c.Serving = "db-1" }
	named := func(claim string) func(*Cluster) { return func(c *Cluster) { c.Named = claim } }
	hint := ". To lead with a volume of your choice, annotate the DatabaseCluster with lead-with=<volume claim>@x"
	plainly := func(message string) Action {
		return Action{Verb: Stay, Undecided: true, Message: "The leading volume is undecided: " + message}
	}
	undecided := func(message string) Action {
		return Action{Verb: Stay, Undecided: true, Message: "The leading volume is undecided: " + message + hint}
	}
	gone := func(pods string) Action {
		return undecided("the volume of " + pods + ", a member of the last group, no longer exists or is empty, and may have had the newest writes")
	}
	queued := func(pod string) Action {
		return Action{Verb: Stay, Queued: true, Message: "Waiting for " + pod + ", which copies a member: one server does at a time"}
	}
	wait := func(message string) Action { return Action{Verb: Stay, Message: message} }

	full := func(c *Cluster) {
		r := c.Reports["db-0"]
		r.Full = true
		c.Reports["db-0"] = r
	}
	roomless := Action{Verb: Stay, Full: true, Message: "Waiting for room on volume claim data-db-0, which is full: raise storageSize"}
	purge := func(text string) func(*Cluster) {
		return func(c *Cluster) {
			for pod, r := range c.Reports {
				r.Purged = set(t, text)
				c.Reports[pod] = r
			}
		}
	}
	// part has a primary be alone in a group.
	part := func(c *Cluster, pod, group string) {
		r := c.Reports[pod]
		r.Group, r.Members = group, []Member{{Server: r.Server, State: Online, Primary: true}}
		c.Reports[pod] = r
	}

	// alone has the primary run without a group.
	alone := func(pod string) func(*Cluster) {
		return func(c *Cluster) {
			r := c.Reports[pod]
			r.View, r.Standalone, r.Members = "", true, []Member{{Server: r.Server, Address: pod + ":3306", State: Online, Primary: true}}
			c.Reports[pod] = r
		}
	}
	resized := func(size int, then ...func(*Cluster)) func(*Cluster) {
		return func(c *Cluster) {
			c.Size = size
			for _, do := range then {
				do(c)
			}
		}
	}
	behind := func(c *Cluster) {
		r := c.Reports["db-0"]
		r.Behind = true
		c.Reports["db-0"] = r
	}

	// listed has the primary still show the server that is decided for.
	listed := func(c *Cluster) {
		r := c.Reports["db-1"]
		r.Members = append(slices.Clone(r.Members), Member{Server: "uuid", Address: c.Address, State: Unreachable})
		c.Reports["db-1"] = r
	}

	for name, c := range map[string]struct {
		reason       string
		servers      string
		transactions []string
		but          func(*Cluster)
		want         Action
	}{
		"Member":     {reason: "A member stays.", servers: "SPS", want: Action{Verb: Stay}},
		"Recovering": {reason: "A server on its way into the group goes on.", servers: "rPS", want: Action{Verb: Stay}},
		"Stranded":   {reason: "A server that no member can bring up to date gives up.", servers: "rr-", want: Action{Verb: Leave, Message: "Leaving the group: no member is online that this server could recover from"}},
		"Founds":     {reason: "A founder is alone for a moment.", servers: "r--", want: Action{Verb: Stay}},
		"Former":     {reason: "A member of an earlier group leaves it, whether it leads or follows.", servers: "SPS", but: func(c *Cluster) { c.Record.Name = "other" }, want: Action{Verb: Leave, Message: "Leaving group #: the group of this cluster is other"}},
		"Failed":     {reason: "A server that has lost its group leaves it before anything else.", servers: "EPS", want: Action{Verb: Leave, Message: "Leaving the group: this server is in state ERROR"}},

		"StandsAlone":    {reason: "The only server needs no group.", servers: "o", transactions: []string{all}, want: Action{Verb: StandAlone}},
		"Standalone":     {reason: "It stays alone while it is the only one that is desired.", servers: "P", but: alone("db-0"), want: Action{Verb: Stay}},
		"SizeUnknown":    {reason: "It does so too while that is not known.", servers: "P", but: resized(0, alone("db-0")), want: Action{Verb: Stay}},
		"Grows":          {reason: "For others to join there has to be a group.", servers: "Pe-", but: alone("db-0"), want: Action{Verb: Form}},
		"FormerAlone":    {reason: "One that another has taken the lead from takes no more writes.", servers: "P", but: func(c *Cluster) { alone("db-0")(c); c.Record.Name = "other" }, want: Action{Verb: Leave, Message: "Leaving group #: the group of this cluster is other"}},
		"Behind":         {reason: "What was received is applied by a group alone.", servers: "o", transactions: []string{all}, but: behind, want: Action{Verb: Bootstrap}},
		"LastOfThree":    {reason: "Of a cluster that is to become one the first server stands alone, if it has all.", servers: "ooo", transactions: []string{all, all, all}, but: resized(1), want: Action{Verb: StandAlone}},
		"AnotherLeads":   {reason: "A server that is to be removed forms a group, so that it can hand over.", servers: "ooo", transactions: []string{"#:1-8", all, all}, but: func(c *Cluster) { c.Size, c.Pod = 1, "db-1" }, want: Action{Verb: Bootstrap}},
		"JoinsAlone":     {reason: "A server waits for the group.", servers: "oP-", transactions: []string{all, all}, but: alone("db-1"), want: wait("Waiting for db-1, which is standalone, to form a group")},
		"CopiesAlone":    {reason: "One without data initializes meanwhile.", servers: "eP-", but: alone("db-1"), want: Action{Verb: InitializeCopy}},
		"CopyWaitsAlone": {reason: "It copies once there is a group.", servers: "cP-", but: alone("db-1"), want: wait("Waiting for db-1, which is standalone, to form a group")},

		"New":           {reason: "The first server of a new cluster initializes a database.", servers: "eee", but: fresh, want: Action{Verb: Initialize}},
		"NewAlone":      {reason: "A server that is not scheduled holds nothing up: no volume is older than the cluster.", servers: "e--", but: fresh, want: Action{Verb: Initialize}},
		"NewSecond":     {reason: "The others wait for it.", servers: "eee", but: func(c *Cluster) { fresh(c); c.Pod = "db-1" }, want: wait("Waiting for db-0 to lead with volume claim data-db-0")},
		"Initialized":   {reason: "Then it founds the group.", servers: "oee", but: fresh, want: Action{Verb: Bootstrap}},
		"Filled":        {reason: "The first server of a cluster that a backup fills restores it.", servers: "eee", but: filled, want: Action{Verb: Restore}},
		"FilledNext":    {reason: "The others wait for it.", servers: "eee", but: func(c *Cluster) { filled(c); c.Pod = "db-1" }, want: wait("Waiting for db-0 to lead with volume claim data-db-0")},
		"FilledFound":   {reason: "Then it founds the group with what it has restored.", servers: "oee", transactions: []string{all}, but: filled, want: Action{Verb: Bootstrap}},
		"FilledBegun":   {reason: "Of several only one restores: the one that has begun.", servers: "eee", but: func(c *Cluster) { filled(c); c.Record.Founder = "db-1" }, want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"FilledBeyond":  {reason: "One that is not desired any more never comes back.", servers: "ee", but: func(c *Cluster) { filled(c); c.Size, c.Record.Founder = 1, "db-1" }, want: Action{Verb: Restore}},
		"FilledTwice":   {reason: "Only the one that was to restore it leads, if the record of that was lost meanwhile.", servers: "oo", transactions: []string{all, all}, but: func(c *Cluster) { filled(c); c.Record.Founder = "db-1" }, want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"FilledAway":    {reason: "It is waited for while it does not answer.", servers: "e-e", but: func(c *Cluster) { filled(c); c.Record.Founder = "db-1" }, want: wait("Waiting for db-1, which restores the backup on volume claim data-db-1 and does not answer. If it does not come back, delete the volume claim and its pod, and another server restores the backup")},
		"FilledGone":    {reason: "Another one begins once its volume is deleted.", servers: "ee", but: func(c *Cluster) { filled(c); c.Record.Founder = "db-2" }, want: Action{Verb: Restore}},
		"FilledPending": {reason: "A server that is not scheduled holds no restored cluster up.", servers: "oe-", transactions: []string{all}, but: filled, want: Action{Verb: Bootstrap}},
		"FilledKept": {reason: "No backup is restored beside a database of an earlier cluster, and none is ignored.", servers: "eo", transactions: []string{"", all}, but: func(c *Cluster) { kept(c); c.Restoring = true },
			want: undecided("volume claim data-db-1 holds a database of an earlier cluster of this name, and this one is to be filled from a backup: delete the volume claim and its pod, or claim the cluster without restoreFrom to continue with that database")},
		"FilledNamed": {reason: "A user may lead with it all the same.", servers: "eo", transactions: []string{"", all}, but: func(c *Cluster) { kept(c); c.Restoring, c.Named = true, "data-db-1" }, want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"RecordLost":  {reason: "Transactions without a record mean that the record was lost: every volume is compared.", servers: "oo-", transactions: []string{all, all}, but: fresh, want: wait("Waiting for the contents of volume claim data-db-2, to compare them with the other volumes of this name" + hint)},

		"Copies":      {reason: "An empty server copies a member.", servers: "ePS", want: Action{Verb: InitializeCopy}},
		"CopiesOn":    {reason: "A copy that was not finished is begun again.", servers: "cPS", transactions: []string{"", all, all}, want: Action{Verb: JoinByCopy}},
		"CopiesFirst": {reason: "Of two the first copies a member: a member serves one copy at a time.", servers: "ccP", transactions: []string{"", "", all}, want: Action{Verb: JoinByCopy}},
		"CopiesNext":  {reason: "The second waits for it.", servers: "ccP", transactions: []string{"", "", all}, but: func(c *Cluster) { c.Pod = "db-1" }, want: queued("db-0")},
		"CopiesBusy":  {reason: "So does the first if the second has begun.", servers: "ccP", transactions: []string{"", "", all}, but: func(c *Cluster) { r := c.Reports["db-1"]; r.State = Recovering; c.Reports["db-1"] = r }, want: queued("db-1")},
		"CopiesLong":  {reason: "The first may fail again and again.", servers: "ccP", transactions: []string{"", "", all}, but: func(c *Cluster) { c.Pod, c.Impatient = "db-1", true }, want: Action{Verb: JoinByCopy}},
		"CopiesEnded": {reason: "One that does not run holds no other up.", servers: "ccP", transactions: []string{"", "", all}, but: func(c *Cluster) {
			c.Pod = "db-1"
			r := c.Reports["db-0"]
			r.Running = false
			c.Reports["db-0"] = r
		}, want: Action{Verb: JoinByCopy}},
		"Joins":         {reason: "A server whose transactions the group has joins.", servers: "oPS", transactions: []string{"#:1-5", all, all}, want: Action{Verb: Join}},
		"JoinsTwo":      {reason: "Two of three are a group.", servers: "oPS-", transactions: []string{all, all, all}, want: Action{Verb: Join}},
		"Full":          {reason: "A server without room waits for some.", servers: "oPS", transactions: []string{"#:1-5", all, all}, but: full, want: roomless},
		"FullStops":     {reason: "It is not started either: that would wait for a minute.", servers: "sPS", but: full, want: roomless},
		"FullCopies":    {reason: "What a copy replaces makes room.", servers: "cPS", transactions: []string{"", all, all}, but: full, want: Action{Verb: JoinByCopy}},
		"FullNewest":    {reason: "Where no other server serves it leads.", servers: "ooo", transactions: []string{all, "#:1-5", "#:1-5"}, but: full, want: Action{Verb: Bootstrap}},
		"Suspect":       {reason: "The primary's report may be older than what the server has received.", servers: "oPS", transactions: []string{"#:1-10", all, all}, want: Action{Verb: Stay, Suspect: true, Message: "Waiting for a newer report of db-1"}},
		"Errant":        {reason: "A server with transactions of its own copies a member.", servers: "oPS", transactions: []string{"#:1-10", all, all}, but: func(c *Cluster) { c.Suspected = 2 }, want: Action{Verb: SetAside, Own: true, Message: "has transactions that the group does not have, 1 in all: #:10"}},
		"Fails":         {reason: "A server that cannot be brought up to date copies a member.", servers: "oPS", transactions: []string{"#:1-5", all, all}, but: func(c *Cluster) { c.Failures = 5 }, want: Action{Verb: SetAside, Message: "could not be brought up to date in 5 attempts"}},
		"FailsErrant":   {reason: "What it has of its own is set aside all the same.", servers: "oPS", transactions: []string{"#:1-10", all, all}, but: func(c *Cluster) { c.Failures, c.Suspected = 5, 2 }, want: Action{Verb: SetAside, Own: true, Message: "has transactions that the group does not have, 1 in all: #:10"}},
		"FailsNoRoom":   {reason: "There is no room for both.", servers: "oPS", transactions: []string{"#:1-5", all, all}, but: func(c *Cluster) { c.Failures, c.InPlace = 5, true }, want: Action{Verb: JoinByCopy}},
		"FailedOnce":    {reason: "But not at once.", servers: "oPS", transactions: []string{"#:1-5", all, all}, but: func(c *Cluster) { c.Failures = 4 }, want: Action{Verb: Join}},
		"Purged":        {reason: "A server that lacks what no binary log has copies a member.", servers: "oPS", transactions: []string{"#:1-5", all, all}, but: purge("#:1-6"), want: Action{Verb: JoinByCopy, Message: "Copying a member: no binary logs go back to what this server has"}},
		"Served":        {reason: "One member that has the logs is enough.", servers: "oPS", transactions: []string{"#:1-5", all, all}, but: func(c *Cluster) { r := c.Reports["db-1"]; r.Purged = set(t, "#:1-6"); c.Reports["db-1"] = r }, want: Action{Verb: Join}},
		"Listed":        {reason: "A server that was killed waits until it is no member any more.", servers: "oPS", transactions: []string{all, all, all}, but: listed, want: wait("Waiting for db-1 to remove this server from the group, in which it was before it started")},
		"ListedCopy":    {reason: "So does one that copies a member, which gives it another UUID.", servers: "cPS", transactions: []string{"", all, all}, but: listed, want: wait("Waiting for db-1 to remove this server from the group, in which it was before it started")},
		"Unrecorded":    {reason: "No server joins a primary that may be lost without being waited for.", servers: "oPS", but: only("db-0", "db-2"), want: wait("Waiting for db-1 to be recorded as a member of the group")},
		"Stale":         {reason: "A primary of an earlier group holds nothing up.", servers: "PoP", transactions: []string{all, all, all}, but: func(c *Cluster) { c.Pod = "db-1"; part(c, "db-0", "earlier"); part(c, "db-2", groupName) }, want: Action{Verb: Join}},
		"NotConfirmed":  {reason: "No server joins a group that may be given up.", servers: "oPS", but: func(c *Cluster) { c.Record.Confirmed = false }, want: wait("Waiting for db-1 to confirm that it leads")},
		"AnotherGroup":  {reason: "No server joins a group that is not this cluster's.", servers: "oPS", but: func(c *Cluster) { c.Record.Name = "other" }, want: wait("Waiting for db-1, which runs group #: the group of this cluster is other")},
		"NoPrimary":     {reason: "Members without a primary elect one.", servers: "oSS", want: wait("Waiting for db-1, db-2 to agree on a primary")},
		"CutOff":        {reason: "A primary that is cut off is not believed what it says of others.", servers: "oVo", transactions: []string{all, all, all}, want: wait("Waiting for db-1 to agree on a primary")},
		"Unrecoverable": {reason: "A member that starts again waits for its program.", servers: "sPS", want: wait("Waiting for MySQL to start")},

		"Newest":        {reason: "After an outage of all the newest leads.", servers: "ooo", transactions: []string{all, "#:1-8", "#:1-7"}, want: Action{Verb: Bootstrap}},
		"Older":         {reason: "The others wait for it.", servers: "ooo", transactions: []string{"#:1-8", all, "#:1-7"}, want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"Equal":         {reason: "Of equals the first leads.", servers: "ooo", transactions: []string{all, all, all}, want: Action{Verb: Bootstrap}},
		"Missing":       {reason: "A member that does not answer may be the newest.", servers: "oo-", transactions: []string{all, all}, want: wait("Waiting for the contents of volume claim data-db-2, to compare them with the other volumes of this name" + hint)},
		"Starting":      {reason: "So may one that is starting.", servers: "oos", transactions: []string{all, all}, want: wait("Waiting for MySQL on db-2 to report its transactions")},
		"StartsItself":  {reason: "It may be this one.", servers: "soo", transactions: []string{"", all, all}, want: wait("Waiting for MySQL to start")},
		"CannotStart":   {reason: "Why one does not start is said.", servers: "oos", transactions: []string{all, all}, but: func(c *Cluster) { r := c.Reports["db-2"]; r.Problem = "killed"; c.Reports["db-2"] = r }, want: wait("Waiting for MySQL on db-2 (killed) to report its transactions")},
		"EmptyMember":   {reason: "An empty volume of a member has lost what may be the newest.", servers: "eoo", transactions: []string{"", all, all}, want: gone("db-0")},
		"GoneMember":    {reason: "So has one that does not exist any more.", servers: "oo", transactions: []string{all, all}, but: func(c *Cluster) { c.Record.Members["db-2"] = "uid-db-2" }, want: gone("db-2")},
		"CopyMember":    {reason: "One that copies a member has had nothing of its own.", servers: "oco", transactions: []string{all, "", all}, want: Action{Verb: Bootstrap}},
		"NoMember":      {reason: "A volume that was no member is not waited for.", servers: "oo-", transactions: []string{all, all}, but: only("db-0", "db-1"), want: Action{Verb: Bootstrap}},
		"NoMemberNewer": {reason: "Nor does it lead.", servers: "oo", transactions: []string{all, "#:1-20"}, but: only("db-0"), want: Action{Verb: Bootstrap}},
		"Parted":        {reason: "Two that each have more are for a user to decide.", servers: "oo", transactions: []string{"#:1-8:10", all}, want: undecided("volume claim data-db-0 has transactions #:10, which data-db-1 does not have, and lacks #:9")},
		"Lost":          {reason: "A cluster that had data does not begin empty.", servers: "eee", want: gone("db-0, db-1, db-2")},
		"Serving":       {reason: "A server that is cut off from a primary that serves does not lead, and names no way to.", servers: "o--", transactions: []string{all}, but: serving, want: wait("Waiting for db-1, which is ready as the primary, to answer this server: the network, or a network policy, may keep them apart")},
		"NamedServing":  {reason: "Nor does the annotation overthrow that one.", servers: "o--", transactions: []string{all}, but: func(c *Cluster) { serving(c); c.Named = "data-db-0" }, want: wait("Waiting for db-1, which is ready as the primary, to answer this server: the network, or a network policy, may keep them apart")},
		"NamedRefusing": {reason: "Nor one that cannot answer at the moment: it may have no connection left.", servers: "os-", transactions: []string{all}, but: func(c *Cluster) { serving(c); c.Named = "data-db-0" }, want: wait("Waiting for db-1, which is ready as the primary, to answer this server: the network, or a network policy, may keep them apart")},
		"ServingGone":   {reason: "One that answers and leads no group any more is marked for a moment longer.", servers: "ooo", transactions: []string{all, "#:1-8", "#:1-8"}, but: serving, want: Action{Verb: Bootstrap}},
		"NoRecord":      {reason: "A cluster that had data, and whose record was lost, does not begin empty.", servers: "e--", but: func(c *Cluster) { fresh(c); c.Led = true }, want: wait("Waiting for the contents of volume claim data-db-1, data-db-2, to compare them with the other volumes of this name" + hint)},
		"NoRecordEmpty": {reason: "Not even where all volumes are empty.", servers: "eee", but: func(c *Cluster) { fresh(c); c.Led = true }, want: undecided("no volume claim holds the data that this cluster had")},
		"NoRecordData":  {reason: "The newest of its volumes leads.", servers: "eo", transactions: []string{"", all}, but: func(c *Cluster) { fresh(c); c.Led = true }, want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"Named":         {reason: "The annotation decides.", servers: "oo", transactions: []string{"#:1-8:10", all}, but: named("data-db-0"), want: Action{Verb: Bootstrap}},
		"NamedOther":    {reason: "Then the others wait.", servers: "oo", transactions: []string{"#:1-8:10", all}, but: named("data-db-1"), want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"NamedMissing":  {reason: "A wrong name is reported.", servers: "oo", but: named("data-db-7"), want: undecided("volume claim data-db-7, which the annotation names, does not exist")},
		"NamedEmpty":    {reason: "An empty volume cannot lead, whatever the annotation says.", servers: "eo", but: named("data-db-0"), want: undecided("volume claim data-db-0, which the annotation names, holds no database")},
		"Kept":          {reason: "Volumes of an earlier cluster are compared.", servers: "oo", transactions: []string{"#:1-8", all}, but: kept, want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"KeptMissing":   {reason: "All of them.", servers: "o-", transactions: []string{all}, but: kept, want: wait("Waiting for the contents of volume claim data-db-1, to compare them with the other volumes of this name" + hint)},
		"KeptEmpty":     {reason: "An empty one beside a database does not initialize.", servers: "eo", transactions: []string{"", all}, but: kept, want: wait("Waiting for db-1 to lead with volume claim data-db-1")},
		"KeptCopy":      {reason: "A copy whose source is gone is no database.", servers: "ce", but: kept, want: plainly("volume claim data-db-0 holds an unfinished copy whose source does not exist: delete it to start with an empty database")},
		"OtherClaim":    {reason: "A report about another volume of that name says nothing.", servers: "oo", transactions: []string{all, all}, but: func(c *Cluster) { c.Volumes[1].UID = "new" }, want: gone("db-1")},
		"KeptOther":     {reason: "A report about another volume of that name says nothing.", servers: "oo", transactions: []string{all, all}, but: func(c *Cluster) { kept(c); c.Volumes[1].UID = "new" }, want: wait("Waiting for the contents of volume claim data-db-1, to compare them with the other volumes of this name" + hint)},
		"Beyond":        {reason: "A member that is not desired any more is needed to compare.", servers: "oo-", transactions: []string{all, all}, but: func(c *Cluster) { c.Size = 2 }, want: Action{Verb: Stay, Servers: 3, Message: "Waiting for server 3 of this cluster, to compare volume claim data-db-2 with the others of this name" + hint}},
		"NamedBeyond":   {reason: "So is one that the annotation names.", servers: "oo-", transactions: []string{all, all}, but: func(c *Cluster) { c.Size, c.Named = 2, "data-db-2" }, want: Action{Verb: Stay, Undecided: true, Servers: 3, Message: "The leading volume is undecided: volume claim data-db-2, which the annotation names, is that of server 3: raise size to 3, or name another one"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := situation(t, c.servers, c.transactions...)
			if c.but != nil {
				c.but(&cluster)
			}
			c.want.Message = strings.ReplaceAll(c.want.Message, "#", groupName)
			if diff := cmp.Diff(c.want, Decide(cluster)); diff != "" {
				t.Errorf("%s\nDecide(%s): -want, +got:\n%s", c.reason, c.servers, diff)
			}
		})
	}
}

// TestOnline: by which servers another one joins.
func TestOnline(t *testing.T) {
	const name = "b"
	c := Cluster{Pod: "db-1", Record: Record{Name: name}, Reports: map[string]Report{
		"db-0": {Pod: "db-0", Running: true, State: Online, Group: name},
		"db-1": {Pod: "db-1", Running: true, State: Online, Group: name},
		"db-2": {Pod: "db-2", Running: true, State: Recovering, Group: name},
		"db-3": {Pod: "db-3"},
		"db-4": {Pod: "db-4", Running: true, State: Online, Group: "a"},
		"db-5": {Pod: "db-5", Running: true, State: Online, Group: name},
	}}
	if diff := cmp.Diff([]string{"db-0", "db-5"}, c.Online()); diff != "" {
		t.Errorf("Online(): want the others that are online in the group: -want, +got:\n%s", diff)
	}
}

// SPDX-License-Identifier: Apache-2.0

package passwords_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/passwords"
)

// steady is a group of two sites with nothing to do.
func steady() passwords.State {
	s := passwords.State{Entries: map[string]passwords.Entry{}, Serial: 2, Open: true, Settled: true}
	for _, a := range passwords.Accounts {
		s.Entries[a] = passwords.Entry{Current: "old", Known: "old"}
	}
	for _, name := range []string{"a", "b"} {
		s.Sites = append(s.Sites, passwords.Site{Name: name, Active: name == "a", Provisioned: true, Looked: true, Serial: 2, Receives: 2, Taken: taken(passwords.Taken{Current: true})})
	}
	return s
}

func taken(t passwords.Taken) map[string]passwords.Taken {
	out := map[string]passwords.Taken{}
	for _, a := range passwords.Accounts {
		out[a] = t
	}
	return out
}

// introducing is a group in which every site takes the next password of the sidecar.
func introducing() passwords.State {
	s := steady()
	s.Entries["sidecar"] = passwords.Entry{Current: "old", Known: "old", Next: "new"}
	for i := range s.Sites {
		s.Sites[i].Taken = taken(passwords.Taken{Current: true, Next: true})
	}
	return s
}

// switching is a group in which nobody uses the former passwords of sidecar and replication any more.
func switching() passwords.State {
	s := steady()
	for _, a := range []string{"sidecar", "replication"} {
		s.Entries[a] = passwords.Entry{Current: "new", Known: "new", Previous: "old"}
	}
	for i := range s.Sites {
		s.Sites[i].Taken = taken(passwords.Taken{Current: true, Previous: true})
	}
	return s
}

// retired is a group in which the former passwords are refused.
func retired() passwords.State {
	s := switching()
	for i := range s.Sites {
		s.Sites[i].Taken = taken(passwords.Taken{Current: true})
	}
	return s
}

// name is what a decision does, and what it waits for.
func name(d passwords.Decision) string {
	out := "nothing"
	if d.Effect != nil {
		out = strings.TrimPrefix(fmt.Sprintf("%T", d.Effect), "passwords.")
	}
	if d.Wait.Reason != "" {
		out += " " + string(d.Wait.Reason)
	}
	return out
}

func TestDecideI21(t *testing.T) {
	edit := func(account, password string) func(*passwords.State) {
		return func(s *passwords.State) {
			e := s.Entries[account]
			e.Current = password
			s.Entries[account] = e
		}
	}
	second := func(taken passwords.Taken) func(*passwords.State) {
		return func(s *passwords.State) { s.Sites[1].Taken["sidecar"] = taken }
	}
	active := func(taken passwords.Taken) func(*passwords.State) {
		return func(s *passwords.State) { s.Sites[0].Taken["sidecar"] = taken }
	}
	unasked := func(site int, trouble string) func(*passwords.State) {
		return func(s *passwords.State) { s.Sites[site].Looked, s.Sites[site].Trouble = false, trouble }
	}
	earlier := func(more func(*passwords.State)) func(*passwords.State) {
		return func(s *passwords.State) {
			s.Entries["clone"] = passwords.Entry{Current: "old"}
			more(s)
		}
	}
	// alone ends the replacement of all accounts but one; everybody else is behind.
	alone := func(account string) func(*passwords.State) {
		return func(s *passwords.State) {
			for _, a := range passwords.Accounts {
				s.Entries[a] = passwords.Entry{Current: "new", Known: "new"}
			}
			s.Entries[account] = passwords.Entry{Current: "new", Known: "new", Previous: "old"}
			for i := range s.Sites {
				s.Sites[i].Serial, s.Sites[i].Receives = 1, 1
			}
		}
	}
	tests := map[string]struct {
		from   func() passwords.State
		change func(*passwords.State)
		want   string
	}{
		"nothing to do":                      {steady, func(*passwords.State) {}, "nothing"},
		"an order":                           {steady, func(s *passwords.State) { s.HasOrder, s.Order = true, "all" }, "Generate"},
		"an order that names nobody":         {steady, func(s *passwords.State) { s.HasOrder, s.Order = true, "root" }, "Refuse"},
		"an empty order":                     {steady, func(s *passwords.State) { s.HasOrder = true }, "Refuse"},
		"an order while the role moves":      {steady, func(s *passwords.State) { s.HasOrder, s.Order, s.Open = true, "all", false }, "nothing ActiveSiteNotOpen"},
		"an order in a group that never was": {steady, func(s *passwords.State) { s.HasOrder, s.Order, s.Fresh = true, "all", true }, "nothing ActiveSiteNotOpen"},
		"the active site was not asked yet":  {introducing, unasked(0, ""), "Look Looking"},
		"the active site cannot be asked":    {introducing, unasked(0, "gone"), "Look SiteUnreachable"},
		"another site was asked in the end":  {introducing, func(s *passwords.State) { s.Sites[1].Trouble = "gone before" }, "Write"},
		"the active site takes none of both": {switching, active(passwords.Taken{}), "Look PasswordRefused"},
		"no sidecar and no receiver uses it": {switching, alone("operator"), "Retire"},
		"no receiver uses it": {switching, func(s *passwords.State) {
			alone("sidecar")(s)
			s.Sites[0].Serial, s.Sites[1].Serial = 2, 2
		}, "Retire"},
		"no sidecar uses it":                   {switching, alone("replication"), "Look ReceiverBehind"},
		"an earlier version, not open":         {steady, earlier(func(s *passwords.State) { s.Open = false }), "nothing ActiveSiteNotOpen"},
		"an earlier version, not asked yet":    {steady, earlier(unasked(0, "")), "Look Looking"},
		"an earlier version, cannot be asked":  {steady, earlier(unasked(0, "gone")), "Look SiteUnreachable"},
		"the active site lacks the next":       {introducing, active(passwords.Taken{Current: true}), "Introduce"},
		"the active site takes neither":        {introducing, active(passwords.Taken{}), "Look PasswordRefused"},
		"not while the role moves":             {introducing, func(s *passwords.State) { s.Open = false }, "nothing ActiveSiteNotOpen"},
		"another site lacks the next":          {introducing, second(passwords.Taken{Current: true}), "Look SiteBehind"},
		"another site cannot be asked":         {introducing, func(s *passwords.State) { s.Sites[1].Looked, s.Sites[1].Trouble = false, "gone" }, "Look SiteUnreachable"},
		"another site was not asked yet":       {introducing, func(s *passwords.State) { s.Sites[1].Looked = false }, "Look Looking"},
		"another site is being cloned":         {introducing, func(s *passwords.State) { s.Sites[1].Busy = true }, "Look SiteBusy"},
		"another site has no data yet":         {introducing, func(s *passwords.State) { s.Sites[1].Provisioned = false }, "Look SiteBusy"},
		"every site takes the next":            {introducing, func(*passwords.State) {}, "Write"},
		"an edit meanwhile is undone":          {introducing, edit("sidecar", "other"), "Write"},
		"a sidecar has the former one":         {switching, func(s *passwords.State) { s.Sites[1].Serial = 1 }, "Look SidecarBehind"},
		"that of the active site too":          {switching, func(s *passwords.State) { s.Sites[0].Serial = 0 }, "Look SidecarBehind"},
		"a receiver has the former one":        {switching, func(s *passwords.State) { s.Sites[1].Receives = 1 }, "Look ReceiverBehind"},
		"the active site has no receiver":      {switching, func(s *passwords.State) { s.Sites[0].Receives = 0 }, "Retire"},
		"somebody may remember the former one": {switching, func(s *passwords.State) { s.Settled = false }, "Look Settling"},
		"a site was cloned from before":        {switching, second(passwords.Taken{Previous: true}), "Look SiteBehind"},
		"a clone needs its donor's":            {switching, func(s *passwords.State) { s.Sites[1].Busy = true }, "Look SiteBusy"},
		"a failover lost the new one":          {switching, active(passwords.Taken{Previous: true}), "Introduce"},
		"nobody uses the former ones":          {switching, func(*passwords.State) {}, "Retire"},
		"not retired while the role moves":     {switching, func(s *passwords.State) { s.Open = false }, "nothing ActiveSiteNotOpen"},
		"a failover lost the end":              {retired, active(passwords.Taken{Current: true, Previous: true}), "Retire"},
		"a replica still takes the former one": {retired, second(passwords.Taken{Current: true, Previous: true}), "Look SiteBehind"},
		"all over":                             {retired, func(*passwords.State) {}, "Finish"},
		"a Secret of an earlier version": {steady, func(s *passwords.State) {
			s.Entries["clone"] = passwords.Entry{Current: "old"}
		}, "Write"},
		"one that no server knows": {steady, func(s *passwords.State) {
			s.Entries["sidecar"] = passwords.Entry{Current: "old"}
			s.Sites[0].Taken["sidecar"] = passwords.Taken{}
		}, "Look PasswordRefused"},
		"one of a group that never was": {steady, func(s *passwords.State) {
			s.Entries["sidecar"], s.Fresh, s.Open, s.Sites = passwords.Entry{Current: "old"}, true, false, nil
		}, "Write"},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			s := tc.from()
			tc.change(&s)
			d := passwords.Decide(s)
			if got := name(d); got != tc.want {
				t.Errorf("got %s (%s), want %s", got, d.Wait.Message, tc.want)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", d.Wait, d, d), "old") {
				t.Error("it shows a password")
			}
		})
	}
}

// TestWhatIsWritten looks at the Secret after each step that changes it.
func TestWhatIsWritten(t *testing.T) {
	const tooLong = "a password that replication would not take"
	tests := map[string]struct {
		from, to passwords.Entry
		events   []passwords.Event
	}{
		"every site takes the next":  {passwords.Entry{Current: "old", Known: "old", Next: "new"}, passwords.Entry{Current: "new", Known: "new", Previous: "old"}, nil},
		"an edit is one to change":   {passwords.Entry{Current: "mine", Known: "old"}, passwords.Entry{Current: "old", Known: "old", Next: "mine"}, []passwords.Event{passwords.EventEdited}},
		"an edit at a bad time":      {passwords.Entry{Current: "mine", Known: "old", Next: "new"}, passwords.Entry{Current: "old", Known: "old", Next: "new"}, []passwords.Event{passwords.EventUndone}},
		"an edit at the end":         {passwords.Entry{Current: "mine", Known: "new", Previous: "old"}, passwords.Entry{Current: "new", Known: "new", Previous: "old"}, []passwords.Event{passwords.EventUndone}},
		"a key that is gone":         {passwords.Entry{Known: "old"}, passwords.Entry{Current: "old", Known: "old"}, []passwords.Event{passwords.EventUndone}},
		"a line break":               {passwords.Entry{Current: "mine\n", Known: "old"}, passwords.Entry{Current: "old", Known: "old"}, []passwords.Event{passwords.EventUnusable}},
		"too long":                   {passwords.Entry{Current: tooLong, Known: "old"}, passwords.Entry{Current: "old", Known: "old"}, []passwords.Event{passwords.EventUnusable}},
		"too long, as the next":      {passwords.Entry{Current: "old", Known: "old", Next: tooLong}, passwords.Entry{Current: "old", Known: "old"}, []passwords.Event{passwords.EventUnusable}},
		"of an earlier version":      {passwords.Entry{Current: "old"}, passwords.Entry{Current: "old", Known: "old"}, nil},
		"no ASCII":                   {passwords.Entry{Current: "min\u00e9", Known: "old"}, passwords.Entry{Current: "old", Known: "old"}, []passwords.Event{passwords.EventUnusable}},
		"the former one is the same": {passwords.Entry{Current: "new", Known: "new", Previous: "new"}, passwords.Entry{Current: "new", Known: "new"}, nil},
		"the next is the same":       {passwords.Entry{Current: "old", Known: "old", Next: "old"}, passwords.Entry{Current: "old", Known: "old"}, nil},
		"the next is the former one": {passwords.Entry{Current: "new", Known: "new", Previous: "old", Next: "old"}, passwords.Entry{Current: "new", Known: "new", Previous: "old"}, nil},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			s := introducing()
			s.Entries["sidecar"] = tc.from
			w, is := passwords.Decide(s).Effect.(passwords.Write)
			if !is {
				t.Fatal("nothing is written")
			}
			if w.Entries["sidecar"] != tc.to {
				t.Error("it is not what is to be written")
			}
			if changed := tc.to.Previous != "" && tc.from.Previous == ""; (w.Serial == s.Serial+1) != changed {
				t.Errorf("serial %d after %d", w.Serial, s.Serial)
			}
			var events []passwords.Event
			for _, n := range w.Notes {
				events = append(events, n.Event)
			}
			if diff := cmp.Diff(tc.events, events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAnOrderIsAnsweredOnceItIsDoneI21: for all its accounts, with passwords that were made for it, and not before.
func TestAnOrderIsAnsweredOnceItIsDoneI21(t *testing.T) {
	for _, tt := range []struct {
		reason             string
		order, id, madeFor string
		want               bool
	}{
		{"one of its accounts", "sidecar", "1", "1", true},
		{"all of its accounts", "replication, sidecar", "1", "1", true},
		{"not all that it names", "all", "1", "1", false},
		{"it was changed to another account", "operator", "1", "1", false},
		{"it was withdrawn", "", "", "1", false},
		{"it names nobody", "root", "1", "1", false},
		{"a person wrote the password, and it may be this one that the order is to end", "sidecar", "1", "", false},
		{"the order before was withdrawn, and its passwords may be known too", "sidecar", "2", "1", false},
		{"an order without an ID is none, and so has nothing that was made for it", "sidecar", "", "", false},
	} {
		s := retired()
		s.HasOrder, s.Order, s.OrderID, s.MadeFor = tt.order != "", tt.order, tt.id, tt.madeFor
		f, is := passwords.Decide(s).Effect.(passwords.Finish)
		if !is || f.Answered != tt.want {
			t.Errorf("%s: answered %t, want %t", tt.reason, f.Answered, tt.want)
		}
		for _, a := range f.Accounts {
			if f.Entries[a] != (passwords.Entry{Current: "new", Known: "new"}) {
				t.Errorf("%s: the former password stays in the Secret", a)
			}
		}
	}
}

// TestWhatIsMadeForAnOrderBearsItsIDI21: also after a rotation that an earlier version of the operator began for it, which noted no order.
// The order then gets one of its own, and is over with that.
func TestWhatIsMadeForAnOrderBearsItsIDI21(t *testing.T) {
	s := retired()
	s.HasOrder, s.Order, s.OrderID = true, "replication,sidecar", "7"
	f, is := passwords.Decide(s).Effect.(passwords.Finish)
	if !is || f.Answered {
		t.Fatal("what an earlier version began is not over, or answers an order")
	}
	s.Entries = f.Entries
	g, is := passwords.Decide(s).Effect.(passwords.Generate)
	if !is || g.OrderID != "7" || strings.Join(g.Accounts, " ") != "replication sidecar" {
		t.Errorf("made for %q: %v", g.OrderID, g.Accounts)
	}
}

func TestParseOrder(t *testing.T) {
	if got, why := passwords.ParseOrder(" operator,clone,operator"); why != "" || strings.Join(got, " ") != v1alpha1.AccountOperator+" "+v1alpha1.AccountClone {
		t.Errorf("got %v, %s", got, why)
	}
	if _, why := passwords.ParseOrder(strings.Repeat("x", 5000)); why == "" || len(why) > 200 {
		t.Errorf("a long order is answered in %d bytes", len(why))
	}
}

// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// operatorTarget names the operator in logs and metrics; peers go by their address.
const operatorTarget = "operator"

// HTTPNetwork asks by HTTP.
type HTTPNetwork struct {
	Client      *client.Client
	OperatorURL string
	Site        fence.Site
	PodUID      string
}

// Operator asks the operator.
func (n HTTPNetwork) Operator(ctx context.Context, nonce string) (wire.Signed, error) {
	return n.Client.OperatorActiveSite(ctx, n.OperatorURL, n.query(nonce))
}

// Peer asks a peer.
func (n HTTPNetwork) Peer(ctx context.Context, addr string) (wire.Signed, error) {
	return n.Client.PeerActiveSite(ctx, addr, n.query(""))
}

func (n HTTPNetwork) query(nonce string) client.ActiveSiteQuery {
	return client.ActiveSiteQuery{Namespace: n.Site.Namespace, Group: n.Site.Group, Site: n.Site.Name, Pod: n.PodUID, Nonce: nonce}
}

// peerNames are the names of the sites at these addresses; the operator writes an address as mysql-GROUP-SITE.NAMESPACE.svc:8090.
func peerNames(group string, addrs []string) []string {
	names := make([]string, 0, len(addrs))
	for _, addr := range addrs {
		host, _, _ := strings.Cut(addr, ":")
		label, _, _ := strings.Cut(host, ".")
		if name := strings.TrimPrefix(label, "mysql-"+group+"-"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// askAll asks the operator and every peer, each in its own goroutine: a slow one delays no other.
func (a *Agent) askAll(ctx context.Context) {
	a.work.Go(func() { a.askOperatorOnce(ctx) })
	for _, addr := range a.Peers {
		a.work.Go(func() { a.once(addr, func() { a.askPeer(ctx, addr) }) })
	}
}

// once skips a target that is being asked already. The next question waits for the answer to this one, and not for the data volume: the
// lease counts from answers, and a volume that hangs for a while must not let it end.
func (a *Agent) once(target string, ask func()) (asked bool) {
	if _, busy := a.asking.LoadOrStore(target, true); busy {
		return false
	}
	defer a.asking.Delete(target)
	ask()
	return true
}

func (a *Agent) askOperatorOnce(ctx context.Context) {
	var x answer
	if a.once(operatorTarget, func() { x = a.hearOperator(ctx) }) {
		// One at a time, or answers would pile up behind a volume that hangs, each with a look at MySQL of its own once it is back. Nothing
		// is lost with one that is skipped: the next answer says the same.
		a.once("opening", func() { a.follow(ctx, x) })
	}
}

// askOperator asks, and opens writes if the answer says so. It returns why the site is not open although the statement names it.
func (a *Agent) askOperator(ctx context.Context) fence.Refusal {
	return a.follow(ctx, a.hearOperator(ctx))
}

// answer is what came of a question.
type answer struct {
	word     fence.Word
	adoption fence.Adoption
	// kept gets the result of writing it to the data volume.
	kept <-chan error
	err  error
}

// hearOperator asks with a fresh nonce and takes the answer in.
func (a *Agent) hearOperator(ctx context.Context) answer {
	w := fence.Word{Origin: fence.Operator, Nonce: rand.Text(), SentAt: a.Clock().Mono}
	return a.exchange(ctx, operatorTarget, w, func(ctx context.Context) (wire.Signed, error) {
		return a.Network.Operator(ctx, w.Nonce)
	})
}

// follow does what an answer of the operator asks for, once it is on the data volume.
func (a *Agent) follow(ctx context.Context, x answer) fence.Refusal {
	err := x.err
	if err == nil {
		err = <-x.kept
	}
	if err != nil {
		return fence.Refusal{Reason: fence.NotFromOperator, Message: "ask operator: " + err.Error()}
	}
	w, adoption := x.word, x.adoption
	if !adoption.Taken {
		return adoption.Refusal
	}
	if s := a.now(); w.Statement.ActiveSite != a.Site.Name || w.Statement.Hold || s.Serves() {
		return fence.Refusal{}
	}
	refusal := a.open(ctx, w)
	if refusal.Reason == fence.MySQLWritable && a.now().Open() {
		// Another answer opened it meanwhile.
		return fence.Refusal{}
	}
	if refusal.Reason != "" && a.changed("opening", string(refusal.Reason)) {
		a.Log.Info("writes stay closed", "reason", refusal.Reason, "message", refusal.Message, "epoch", w.Statement.Epoch)
	}
	return refusal
}

func (a *Agent) askPeer(ctx context.Context, addr string) {
	w := fence.Word{Origin: fence.Peer, SentAt: a.Clock().Mono}
	// The result is in the log and in the metrics; no caller needs it.
	_ = a.exchange(ctx, addr, w, func(ctx context.Context) (wire.Signed, error) { return a.Network.Peer(ctx, addr) })
}

// exchange asks one target and takes its answer in. It does not wait for the data volume.
func (a *Agent) exchange(ctx context.Context, target string, w fence.Word, ask func(context.Context) (wire.Signed, error)) answer {
	bound, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	signed, err := ask(bound)
	if err != nil {
		a.tell(target, resultOf(err), err)
		return answer{err: err}
	}
	w.Signed = signed
	if w.Statement, err = a.Verify(signed); err != nil {
		a.tell(target, resultInvalid, err)
		return answer{err: fmt.Errorf("verify answer: %w", err)}
	}
	adoption, kept := a.learn(w)
	if !adoption.Renewed {
		a.tell(target, resultNotTaken, errors.New(adoption.Refusal.Message))
	} else {
		a.tell(target, resultOK, nil)
	}
	return answer{word: w, adoption: adoption, kept: kept}
}

// tell counts an exchange, and logs it if its result differs from the last one with this target.
func (a *Agent) tell(target, result string, err error) {
	a.metrics.exchanges.WithLabelValues(target, result).Inc()
	if !a.changed("exchange with "+target, result) {
		return
	}
	if result == resultOK {
		a.Log.Info("target answers", "target", target)
		return
	}
	a.Log.Warn("no usable answer, asking again", "target", target, "result", result, "error", err)
}

func resultOf(err error) string {
	if _, told := errors.AsType[*client.StatusError](err); told {
		return resultRefused
	}
	return resultUnreachable
}

// learn takes a word in and fences if it says so. The channel gets the result of writing it to the data volume. The fence and the lease do
// not wait for that: closing promises nothing, a volume that hangs must not keep MySQL open, and one that hangs for a while must not end
// the lease. Opening, vouching and acknowledging do wait (I5): package fence checks what the volume holds.
func (a *Agent) learn(w fence.Word) (fence.Adoption, <-chan error) {
	var adoption fence.Adoption
	a.update(func(s fence.State) fence.State {
		s, adoption = fence.Adopt(s, w, a.Clock())
		return s
	})
	if adoption.Newer {
		a.Log.Info("learned a newer epoch", "epoch", w.Statement.Epoch, "activeSite", w.Statement.ActiveSite,
			"hold", w.Statement.Hold, "origin", w.Origin)
	}
	kept := make(chan error, 1)
	if a.toKeep.Add(1) > mostToKeep {
		a.toKeep.Add(-1)
		kept <- errVolumeHangs
	} else {
		a.work.Go(func() {
			defer a.toKeep.Add(-1)
			kept <- a.keep()
		})
	}
	if a.enforce().Do == fence.KeepOut {
		a.work.Go(a.keepOut) // in parallel: the one that pushed waits for a report
	}
	return adoption, kept
}

// mostToKeep bounds the words that wait for the data volume at a time: more than all sites of a group bring at once. Each writes the
// newest statement there is by then, so none is missed.
const mostToKeep = 64

var errVolumeHangs = fmt.Errorf("the data volume takes nothing: %d statements wait for it", mostToKeep)

// keep writes the newest statement to the data volume unless it is there already.
func (a *Agent) keep() error {
	a.saving <- struct{}{}
	defer func() { <-a.saving }()
	k, due := fence.Unkept(a.now())
	if !due {
		return nil
	}
	if err := a.Volume.Save(k); err != nil {
		if a.changed("volume", "broken") {
			a.Log.Error("the statement cannot be written to the data volume", "epoch", k.Statement.Epoch, "error", err)
		}
		return err
	}
	if a.changed("volume", "") {
		a.Log.Info("the statement is on the data volume", "epoch", k.Statement.Epoch)
	}
	a.update(func(s fence.State) fence.State { return fence.Keep(s, k) })
	return nil
}

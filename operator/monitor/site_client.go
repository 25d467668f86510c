// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// siteClient speaks to the sidecars and the MySQL of one group's sites, and knows why one refuses to speak. It locks itself.
type siteClient struct {
	m   *Monitor
	key types.NamespacedName
	log *slog.Logger
	// refusals holds why sites that can be reached refuse to speak.
	refusals sync.Map
	// reportKeys holds the keys that authenticate the reports of the sites, as far as they were read.
	reportKeys sync.Map
}

// push sends a statement and returns the report. An answer that is no report of the site counts as silence, and is told.
func (c *siteClient) push(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, q asking) failover.Sidecar {
	r, err := c.askReport(ctx, group, q)
	bad := badAnswerOf(err, r)
	c.badAnswer(q.site, bad)
	if bad.reason == answerBadStatement {
		return c.askDeaf(ctx, group, q)
	}
	if err != nil || bad.reason != "" {
		return failover.Sidecar{}
	}
	return failover.Sidecar{Answered: true, Report: r.Trimmed(), At: time.Now()}
}

// askDeaf asks a sidecar that accepts no statement for its report without one. Only two things in it count: which key it trusts, and
// how long its lease still runs, which its peers may keep alive. Without them it would seem to outlive its lease, and no other site
// could ever take over.
func (c *siteClient) askDeaf(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, q asking) failover.Sidecar {
	q.signed = ""
	r, err := c.askReport(ctx, group, q)
	if err != nil || r.Overlong() {
		return failover.Sidecar{}
	}
	return failover.Sidecar{Deaf: true, Report: wire.Report{LeaseMillis: r.LeaseMillis, Anchor: r.Anchor}, At: time.Now()}
}

func sidecarAddr(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(wire.PortSidecar))
}

func (c *siteClient) query(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, site string) *mysql.Status {
	db, err := c.connection(ctx, group, link, site)
	if err != nil {
		c.log.Debug("reach site", "site", site, "error", err)
		return nil
	}
	status, err := db.Status(ctx)
	c.refused(fromMySQL, site, access.Refusal(c.key, site, err))
	if err != nil {
		// A certificate or a password may have been replaced: begin again with the present ones.
		link.close()
		return nil
	}
	return &status
}

// connection returns the connection to a site, and makes one if there is none.
func (c *siteClient) connection(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, site string) (*mysql.DB, error) {
	db, podIP := link.current()
	if db != nil {
		return db, nil
	}
	if podIP == "" {
		return nil, fmt.Errorf("%s has no pod", site)
	}
	target, err := c.m.Access.Site(ctx, group, site, podIP)
	if err != nil {
		return nil, err
	}
	if db, err = mysql.Open(target); err != nil {
		return nil, err
	}
	if db = link.keep(db, podIP); db == nil {
		return nil, fmt.Errorf("the pod of %s changed", site)
	}
	return db, nil
}

// merge joins both witnesses. Sets come from the operator's own query, and from the report where that failed.
func merge(seen *mysql.Status, sidecar failover.Sidecar) failover.MySQL {
	if seen == nil {
		if !sidecar.Answered || !sidecar.Report.Answered {
			return failover.MySQL{}
		}
		executed, err := gtid.Parse(sidecar.Report.GTIDExecuted)
		if err != nil {
			return failover.MySQL{}
		}
		return failover.MySQL{SuperReadOnly: sidecar.Report.SuperReadOnly, ReadOnly: !sidecar.Report.Writable, Executed: executed,
			OfflineMode: sidecar.Report.OfflineMode, ServerUUID: sidecar.Report.ServerUUID}
	}
	out := failover.MySQL{
		Direct: true, ServerUUID: seen.ServerUUID, Version: seen.Version, ReadOnly: seen.ReadOnly,
		SuperReadOnly: seen.SuperReadOnly, OfflineMode: seen.OfflineMode, Executed: seen.Executed, Purged: seen.Purged,
		Retrieved: seen.Retrieved, Cloning: seen.Cloning, HalfCloned: seen.HalfCloned, NoClone: seen.NoClone, Filtered: seen.Filtered,
	}
	if r := seen.Replica; r != nil {
		out.ReplicaHost, out.IORunning, out.SQLRunning = r.SourceHost, r.IORunning, r.SQLRunning
		out.Delayed = r.Delay > 0
		out.ReceiverStopped = !r.IORunning && !r.IOConnecting
		out.IOError, out.SQLError, out.IOErrno, out.LagSeconds = r.IOError, r.SQLError, r.IOErrno, r.LagSeconds
	}
	return out
}

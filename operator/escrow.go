// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/certificates"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/escrow"
	"github.com/mysql-mfg/mfg/operator/monitor"
	"github.com/mysql-mfg/mfg/operator/server"
)

// Rate of the requests that pushes of keyrings cause at the API server.
const (
	escrowQPS   = 20
	escrowBurst = 40
)

// checkEscrow says whether the settings of the escrow listener fit together.
func (s settings) checkEscrow() error {
	if (s.escrowAddr == "") != (s.escrowURL == "") {
		return fmt.Errorf("--escrow-bind-address and --escrow-url belong together: set both, or none to take no keyrings into escrow")
	}
	return nil
}

// escrowCertificate keeps the certificate of the escrow listener; nil if there is no listener, or a person makes its certificate.
func escrowCertificate(mgr ctrl.Manager, s settings, log *slog.Logger) *certificates.Escrow {
	if s.escrowAddr == "" || !s.escrowOwn {
		return nil
	}
	return certificates.NewEscrow(certificates.EscrowOptions{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Log: log, Namespace: s.namespace, Service: auxiliaryService, Leading: mgr.Elected(),
	})
}

// authoritiesOf returns nil if the operator has no certificate of its own.
func authoritiesOf(own *certificates.Escrow) func() []byte {
	if own == nil {
		return nil
	}
	return own.Bundle
}

// trustOf is the same for what keeps the sidecars' trust in it.
func trustOf(own *certificates.Escrow, keyrings encryption.Escrow) func(context.Context, *v1alpha1.MysqlFailoverGroup, string) error {
	store, is := keyrings.(keyringsOf)
	if own == nil || !is {
		return nil
	}
	return store.KeepTrust
}

// auxiliaryService is the Service by which sidecars reach the listener, as the chart names it.
const auxiliaryService = "mfg-auxiliary"

// addEscrow adds the listener that takes keyrings into escrow, if the installation has one.
func addEscrow(mgr ctrl.Manager, s settings, loops *monitor.Monitor, own *certificates.Escrow, log *slog.Logger) error {
	if s.escrowAddr == "" {
		return nil
	}
	// A client of its own: strangers can make the listener ask the API server, and failover must not wait behind them.
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst = escrowQPS, escrowBurst
	direct, err := client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make client of the escrow listener: %w", err)
	}
	store := escrow.New(escrow.Options{Client: direct, Live: direct, Pods: podsOf(loops), Log: log})
	listener := server.EscrowRunnable{Escrow: server.NewEscrow(store, log), Addr: s.escrowAddr, Dir: s.escrowTLSDir, Taken: certificates.ShowEscrow}
	if own != nil {
		listener.Own = own.GetCertificate
		if err := mgr.Add(own); err != nil {
			return fmt.Errorf("add what keeps its certificate: %w", err)
		}
	}
	return mgr.Add(listener)
}

// podsOf says which pod the poll loops take for the site's.
func podsOf(loops *monitor.Monitor) escrow.Pods {
	return func(namespace, group, site string) (string, bool) {
		facts, known := loops.Facts(namespace, group)
		if !known || !loops.Leading() {
			return "", false
		}
		for _, s := range facts.Sites {
			if s.Name == site {
				return s.Pod.UID, true
			}
		}
		return "", true
	}
}

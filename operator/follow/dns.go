// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var eventDNSSwitched = events.Normal(v1alpha1.ReasonDNSSwitched, "Switch")

// errNoExternalDNS is what a cluster without external-dns' definition answers.
var errNoExternalDNS = hindrance{reason: v1alpha1.ReasonExternalDNSMissing,
	message: "spec.dns is set, but the cluster does not know the kind DNSEndpoint: install the CustomResourceDefinition " +
		"dnsendpoints.externaldns.k8s.io and run external-dns with --source=crd, or remove spec.dns"}

// followDNS has external-dns publish the active site. A site without a usable address gets no record: the old one would
// send writers to a site that is fenced or gone.
func (r *Follow) followDNS(ctx context.Context, s *scope.Scope) (conditions.Condition, error) {
	active := s.ActiveSite()
	if name := s.Group.Spec.DNS.Name; !r.limits.AllowsName(name, s.Key.Namespace) {
		// A record that was published before goes too: it is the name that is not the group's.
		message := fmt.Sprintf("%s is not published: the operator may publish names in or below %s only (tenants.allowedDNSSuffixes of its chart); set another spec.dns.name",
			name, strings.Join(r.limits.DNSSuffixes, ", "))
		return conditions.False(v1alpha1.ConditionDNSReady, v1alpha1.ReasonNameNotAllowed, message), r.clearDNS(ctx, s)
	}
	record, err := dnsRecord(s.Group.Spec.DNS.Name, s.Sites()[active])
	if err != nil {
		if err := r.clearDNS(ctx, s); err != nil {
			return conditions.Condition{}, err
		}
		message := fmt.Sprintf("%s has no record, because the active site %s %v", s.Group.Spec.DNS.Name, active, err)
		return conditions.False(v1alpha1.ConditionDNSReady, v1alpha1.ReasonAddressMissing, message), nil
	}
	confirmed, err := r.publish(ctx, s, record)
	if err != nil {
		return conditions.Condition{}, err
	}
	message := fmt.Sprintf("%s is to be %s %s, of the active site %s", s.Group.Spec.DNS.Name, record.Type, record.Target, active)
	r.Say(s, "", eventDNSSwitched, message)
	if next := unaddressed(s); next != "" {
		return conditions.False(v1alpha1.ConditionDNSReady, v1alpha1.ReasonAddressMissing, message+"; but "+next), nil
	}
	if confirmed {
		message += "; external-dns has taken it over"
	} else {
		message += "; external-dns has not confirmed it"
	}
	return conditions.True(v1alpha1.ConditionDNSReady, v1alpha1.ReasonAsExpected, message), nil
}

// publish writes the record. It is confirmed if external-dns has seen the newest generation of it.
func (r *Follow) publish(ctx context.Context, s *scope.Scope, record render.DNSRecord) (confirmed bool, err error) {
	want := render.DNSEndpoint(s.In, record)
	current, err := r.objects.Current(ctx, want, true)
	if err != nil {
		return false, dnsError("read", err)
	}
	if current != nil && current.GetDeletionTimestamp() != nil {
		return false, fmt.Errorf("DNSEndpoint %s is being deleted", current.GetName())
	}
	if err := r.objects.ApplyOver(ctx, s.Group, want, current); err != nil {
		return false, dnsError("write", err)
	}
	have, ok := current.(*unstructured.Unstructured)
	if !ok || have == nil || !slices.Equal(targets(have), targets(want)) {
		return false, nil
	}
	observed, found, err := unstructured.NestedInt64(have.Object, "status", "observedGeneration")
	return err == nil && found && observed == have.GetGeneration(), nil
}

// targets are what the names of a DNSEndpoint point to.
func targets(endpoint *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(endpoint.Object, "spec", "endpoints")
	var out []string
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			some, _, _ := unstructured.NestedStringSlice(fields, "targets")
			out = append(out, some...)
		}
	}
	return out
}

// clearDNS deletes the record, if it is the group's own.
func (r *Follow) clearDNS(ctx context.Context, s *scope.Scope) error {
	err := r.objects.Remove(ctx, s.Group, render.NoDNSEndpoint(s.In))
	if err == nil || meta.IsNoMatchError(err) {
		// Without the definition there is no object either.
		return nil
	}
	return fmt.Errorf("delete DNSEndpoint: %w", err)
}

// dnsError tells a cluster that does not know DNSEndpoints from other errors. After the definition was removed the
// client still believes in it, and the API server answers that the path does not exist.
func dnsError(verb string, err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return errNoExternalDNS
	}
	return fmt.Errorf("%s DNSEndpoint: %w", verb, err)
}

// dnsRecord is the record with which a name leads to a site. The error completes a sentence about the site.
func dnsRecord(name string, site v1alpha1.Site) (render.DNSRecord, error) {
	address := strings.ToLower(site.ExternalAddress)
	if address == "" {
		return render.DNSRecord{}, fmt.Errorf("has no externalAddress: set it in spec.sites")
	}
	if ip, err := netip.ParseAddr(address); err == nil {
		if ip.Is4() {
			return render.DNSRecord{Type: "A", Target: ip.String()}, nil
		}
		if !ip.Is4In6() {
			return render.DNSRecord{Type: "AAAA", Target: ip.String()}, nil
		}
	}
	switch problems := validation.IsDNS1123Subdomain(address); {
	case len(problems) > 0 || numericTop(address):
		return render.DNSRecord{}, fmt.Errorf("has the externalAddress %q, which is neither an IP address nor a host name: give it without a port", site.ExternalAddress)
	case address == strings.TrimSuffix(name, "."):
		return render.DNSRecord{}, fmt.Errorf("has the name itself as externalAddress: it must lead to the site without it")
	}
	return render.DNSRecord{Type: "CNAME", Target: address}, nil
}

// numericTop is true for what looks like an IP address and is none, such as 192.0.2.300: no top-level domain is a number.
func numericTop(address string) bool {
	last := address[strings.LastIndexByte(address, '.')+1:]
	return strings.Trim(last, "0123456789") == ""
}

// unaddressed says which sites could become active and would leave the name without a record.
func unaddressed(s *scope.Scope) string {
	var out []string
	for _, site := range s.Group.Spec.Sites {
		if site.Role != v1alpha1.PrimaryCandidate || site.Name == s.ActiveSite() {
			continue
		}
		if _, err := dnsRecord(s.Group.Spec.DNS.Name, site); err != nil {
			out = append(out, fmt.Sprintf("site %s %v", site.Name, err))
		}
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return strings.Join(out, ", ") + "; while it is active, the name has no record"
}

// SPDX-License-Identifier: Apache-2.0

// Package controller is the shell that converges the Kubernetes objects of a group on watch events: Secrets, TLS,
// Deployments and their ordered update, Services, and the provisioning of replicas. It never decides who may write
// and never imports the monitor: facts about the sites come from the snapshot that the monitor publishes.
package controller

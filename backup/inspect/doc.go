// SPDX-License-Identifier: Apache-2.0

// Package inspect answers questions about the archive of binary logs of a group: what can be recovered (timeline), where something happened
// (find), and what a failover lost (lost). It is run in a pod, beside a process that waits, by somebody who may exec there; the question
// comes by stdin, so that neither an age identity nor a value that is looked for is in an argument, an environment or an audit log.
//
// The answer is lines of JSON (api/wire.InspectLine), of which the last is the end: without it the answer was cut off. Rows are decoded only
// where they are asked for, and nothing of them gets into an error or a log.
//
// Binary logs are read as a stream: an event at a time, of at most eventMax bytes. A log is what was in a bucket: nothing in it is trusted
// to be well-formed.
package inspect

// Package kube is a client for the part of the Kubernetes API that the managers use: the
// objects of one DatabaseCluster, by name. It has a scheme of its own with two groups, since
// the whole clientset would be most of the program.
package kube

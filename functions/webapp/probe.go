package webapp

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// defaultStartSeconds is how many seconds a start may take, unless the claim sets a limit.
const defaultStartSeconds = 300

// probe adds the startup, readiness and liveness probes to a container.
func (a *app) probe(c *corev1.Container) {
	c.StartupProbe = &corev1.Probe{ProbeHandler: a.ready(), PeriodSeconds: 1, FailureThreshold: a.startSeconds(), TimeoutSeconds: 3}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: a.ready(), PeriodSeconds: 5, FailureThreshold: 2, TimeoutSeconds: 3}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: a.alive(), PeriodSeconds: 10, FailureThreshold: 6, TimeoutSeconds: 3}
}

func (a *app) startSeconds() int32 {
	if p := a.spec.Probe; p != nil && p.Startup != nil {
		return p.Startup.Seconds
	}
	return defaultStartSeconds
}

// ready returns the request of the startup and readiness probes: the claim's path, or without one
// any connection to the port.
func (a *app) ready() corev1.ProbeHandler {
	port := a.probePort()
	if p := a.spec.Probe; p != nil && p.Path != "" {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: p.Path, Port: port}}
	}
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
}

// alive returns the request of the liveness probe: the path that the claim names for it.
// Without one it only checks that the process accepts connections, since a dependency that is
// down must not restart the pods.
func (a *app) alive() corev1.ProbeHandler {
	if p := a.spec.Probe; p != nil && p.Liveness != nil {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: p.Liveness.Path, Port: a.probePort()}}
	}
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}}
}

func (a *app) probePort() intstr.IntOrString {
	if p := a.spec.Probe; p != nil && p.Port != nil {
		return intstr.FromInt32(*p.Port)
	}
	return intstr.FromString(portName)
}

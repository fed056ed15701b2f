package workload

import (
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/backup"
)

// Derived is a pod with another Task than that of the CronJob from which it is derived. The
// CronJobs of physical backups are composed by the function for a DatabaseCluster, and only the
// function has the configuration that pgBackRest needs.
type Derived struct {
	From *batchv1.CronJob

	// Change changes the CronJob's own task.
	Change func(*backup.Task)

	Resources *corev1.ResourceRequirements
	Scratch   *Scratch
}

// Template returns the template of the pod.
func (d Derived) Template() (corev1.PodTemplateSpec, error) {
	out := *d.From.Spec.JobTemplate.Spec.Template.DeepCopy()
	i := slices.IndexFunc(out.Spec.Containers, hasTask)
	if i < 0 {
		return out, fmt.Errorf("cannot use CronJob %s: no container of its pods has %s", d.From.Name, backup.TaskVariable)
	}
	c := &out.Spec.Containers[i]
	task, err := d.task(c)
	if err != nil {
		return out, err
	}
	value, err := encode(task)
	if err != nil {
		return out, err
	}
	setEnv(c, backup.TaskVariable, value)
	out.Labels = Labelled(out.Labels, task.Action)
	if task.Action != backup.Verify {
		return out, nil
	}
	d.mountScratch(&out.Spec, c, out.Labels)
	return out, addThrowAway(&out, i, task, "", d.Resources)
}

// Task returns the task of the pod.
func (d Derived) Task() (backup.Task, error) {
	containers := d.From.Spec.JobTemplate.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, hasTask)
	if i < 0 {
		return backup.Task{}, fmt.Errorf("cannot use CronJob %s: no container of its pods has %s", d.From.Name, backup.TaskVariable)
	}
	return d.task(&containers[i])
}

// task reads the task of a container, and changes it.
func (d Derived) task(c *corev1.Container) (backup.Task, error) {
	task := backup.Task{}
	for _, e := range c.Env {
		if e.Name != backup.TaskVariable {
			continue
		}
		if err := json.Unmarshal([]byte(e.Value), &task); err != nil {
			return task, fmt.Errorf("cannot read %s of CronJob %s: %w", backup.TaskVariable, d.From.Name, err)
		}
	}
	d.Change(&task)
	return task, nil
}

func hasTask(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == backup.TaskVariable })
}

// mountScratch mounts the scratch volume, in place of one that is there already.
func (d Derived) mountScratch(pod *corev1.PodSpec, c *corev1.Container, labels map[string]string) {
	at := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == backup.ScratchDir })
	if at >= 0 {
		name := c.VolumeMounts[at].Name
		pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		c.VolumeMounts = slices.Delete(c.VolumeMounts, at, at+1)
	}
	v := emptyDir(scratch, scratchLimit(d.Resources))
	if d.Scratch != nil {
		v = d.Scratch.volume(labels)
	}
	pod.Volumes = append(pod.Volumes, v)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: backup.ScratchDir})
}

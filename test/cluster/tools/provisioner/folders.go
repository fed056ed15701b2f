package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// folders provisions volumes as folders under one root.
type folders struct {
	root string
}

// Provision creates a folder and returns it as a local volume of the node that the scheduler
// chose.
func (f *folders) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if o.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, errors.New("cannot provision a volume before its node is known: the storage class needs volumeBindingMode WaitForFirstConsumer")
	}
	if m := o.PVC.Spec.VolumeMode; m != nil && *m == corev1.PersistentVolumeBlock {
		return nil, controller.ProvisioningFinished, errors.New("cannot provision a block volume: this cluster has folders only")
	}
	path := filepath.Join(f.root, o.PVC.Namespace+"_"+o.PVC.Name+"_"+o.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("cannot make volume folder: %w", err)
	}
	return volume(o, path), controller.ProvisioningFinished, nil
}

// Delete removes a volume's folder with its content. It refuses a path that is not directly below
// the root.
func (f *folders) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	if pv.Spec.Local == nil || filepath.Dir(pv.Spec.Local.Path) != filepath.Clean(f.root) {
		return fmt.Errorf("cannot delete volume %s: it is no folder of %s", pv.Name, f.root)
	}
	if err := os.RemoveAll(pv.Spec.Local.Path); err != nil {
		return fmt.Errorf("cannot delete the folder of volume %s: %w", pv.Name, err)
	}
	return nil
}

func volume(o controller.ProvisionOptions, path string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            o.PVC.Spec.AccessModes,
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			VolumeMode:             o.PVC.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key:      corev1.LabelHostname,
					Operator: corev1.NodeSelectorOpIn,
					Values:   []string{o.SelectedNodeName},
				}}}},
			}},
		},
	}
	if o.StorageClass.ReclaimPolicy != nil {
		pv.Spec.PersistentVolumeReclaimPolicy = *o.StorageClass.ReclaimPolicy
	}
	return pv
}

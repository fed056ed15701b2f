package main

// etcd stores the cluster's objects. It does not wait for the disk (fsync): the data of a test
// cluster that a power cut may destroy is not worth the time, and up rebuilds a cluster whose
// etcd no longer starts.
func (c *cluster) etcd() process {
	const client, peer = "127.0.0.1:2379", "127.0.0.1:2380"
	return process{
		name:  "etcd",
		ports: []string{client, peer},
		argv: []string{
			c.tools.path("etcd"),
			"--name=storeplane",
			"--data-dir=" + c.path("etcd"),
			"--unsafe-no-fsync",
			"--listen-client-urls=http://" + client,
			"--advertise-client-urls=http://" + client,
			"--listen-peer-urls=http://" + peer,
			"--initial-advertise-peer-urls=http://" + peer,
			"--initial-cluster=storeplane=http://" + peer,
			"--log-level=warn",
		},
		env:     fewerCollections,
		healthy: answers("http://" + client + "/health"),
	}
}

package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v3/pkg/oci"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	rekor "github.com/sigstore/rekor/pkg/client"
	"github.com/sigstore/rekor/pkg/generated/client"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// signer signs with one key.
type signer struct {
	key    signature.SignerVerifier
	public crypto.PublicKey

	// pem is the public key as PEM.
	pem []byte

	// log is the transparency log for the signatures. Without one, the key signs the entries.
	log *client.Rekor
}

func newSigner(key, password []byte) (*signer, error) {
	k, err := cosign.LoadPrivateKey(key, password, nil)
	if err != nil {
		return nil, fmt.Errorf("check its password in %s, and that it is a key of cosign: %w", passwordVariable, err)
	}
	public, err := k.PublicKey()
	if err != nil {
		return nil, err
	}
	if _, ok := public.(*ecdsa.PublicKey); !ok {
		return nil, errors.New("it is no ECDSA key: generate one with cosign generate-key-pair or make signing-key")
	}
	pem, err := cryptoutils.MarshalPublicKeyToPEM(public)
	if err != nil {
		return nil, err
	}
	return &signer{key: k, public: public, pem: pem}, nil
}

func (s *signer) useLog(url string) (err error) {
	if s.log, err = rekor.GetRekorClient(url); err != nil {
		return fmt.Errorf("cannot use the transparency log %s: %w", url, err)
	}
	return nil
}

// sign signs an image's digest.
func (s *signer) sign(ctx context.Context, image name.Digest) (oci.Signature, error) {
	claim, err := payload.Cosign{Image: image}.MarshalJSON()
	if err != nil {
		return nil, err
	}
	sig, err := s.key.SignMessage(bytes.NewReader(claim))
	if err != nil {
		return nil, err
	}
	entry, err := s.entry(ctx, claim, sig)
	if err != nil {
		return nil, fmt.Errorf("cannot enter the signature in the transparency log: %w", err)
	}
	return static.NewSignature(claim, base64.StdEncoding.EncodeToString(sig), static.WithBundle(entry))
}

// entry returns the entry of a signature in a transparency log, signed by the log.
func (s *signer) entry(ctx context.Context, claim, sig []byte) (*bundle.RekorBundle, error) {
	if s.log == nil {
		return s.ownEntry(claim, sig, time.Now())
	}
	sum := sha256.New()
	_, _ = sum.Write(claim)
	e, err := cosign.TLogUpload(ctx, s.log, sig, sum, s.pem)
	if err != nil {
		return nil, err
	}
	entry := bundle.EntryToBundle(e)
	if entry == nil {
		return nil, errors.New("it has not signed the entry")
	}
	return entry, nil
}

// ownEntry returns an entry that the key itself signs. It adds no transparency: it only repeats the
// signature, since Crossplane requires an entry.
func (s *signer) ownEntry(claim, sig []byte, at time.Time) (*bundle.RekorBundle, error) {
	sum := sha256.Sum256(claim)
	body, err := json.Marshal(map[string]any{
		"apiVersion": "0.0.1",
		"kind":       "hashedrekord",
		"spec": map[string]any{
			"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
			"signature": map[string]any{"content": sig, "publicKey": map[string]any{"content": s.pem}},
		},
	})
	if err != nil {
		return nil, err
	}
	return s.signEntry(body, at)
}

// signEntry signs an entry as a transparency log does.
func (s *signer) signEntry(body []byte, at time.Time) (*bundle.RekorBundle, error) {
	id, err := cosign.GetTransparencyLogID(s.public)
	if err != nil {
		return nil, err
	}
	entry := bundle.RekorPayload{Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: at.Unix(), LogID: id}
	plain, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	canonical, err := jsoncanonicalizer.Transform(plain)
	if err != nil {
		return nil, err
	}
	set, err := s.key.SignMessage(bytes.NewReader(canonical))
	if err != nil {
		return nil, err
	}
	return &bundle.RekorBundle{SignedEntryTimestamp: set, Payload: entry}, nil
}

// own reports whether a signature was made with the signer's key.
func (s *signer) own(sig oci.Signature) bool {
	claim, err := sig.Payload()
	if err != nil {
		return false
	}
	b64, err := sig.Base64Signature()
	if err != nil {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		return false
	}
	return s.key.VerifySignature(bytes.NewReader(raw), bytes.NewReader(claim)) == nil
}

// blob returns the signature of a file, as cosign sign-blob writes it.
func (s *signer) blob(data []byte) ([]byte, error) {
	sig, err := s.key.SignMessage(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(sig)), nil
}

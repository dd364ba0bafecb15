#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/network/module.h"
#include "adapters/network/signature.h"

namespace mergeplan::network {

struct ScriptNetwork {
  std::unique_ptr<Module> module;
  Signature signature;
  std::string path;  // of the TorchScript file
};

// What the sidecar of a TorchScript file says, named in either way as for LoadScript; the file
// itself is not opened. Errors of ReadSidecar.
absl::StatusOr<Sidecar> SidecarOf(const std::string& path);

// A TorchScript file as people have it, on the CPU, in evaluation mode. `path` is the sidecar
// (model.toml) or the TorchScript file whose sidecar lies beside it (model.ts, model.toml).
// Parameters become leaves that ask for gradients. Errors of ReadSidecar, NOT_FOUND for a missing
// file, INVALID_ARGUMENT for one that is no TorchScript.
//
// The interpreter runs without its profiling optimiser: that changes how a network is computed
// after its first calls, and a run that is stopped and taken up again would see other last digits.
absl::StatusOr<ScriptNetwork> LoadScript(const std::string& path);

// The same without a sidecar, for a signature from elsewhere.
absl::StatusOr<std::unique_ptr<Module>> LoadScriptModule(const std::string& path,
                                                         const Signature& signature);

// Writes folder/model.ts, folder/model.toml and, where the signature has a table, folder/model.npz,
// which LoadScript reads.
absl::Status SaveScript(const Module& module, const Signature& signature,
                        const std::string& folder);

}  // namespace mergeplan::network

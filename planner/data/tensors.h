#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/data/archive.h"
#include "planner/data/samples.h"
#include "planner/data/stream.h"

namespace mergeplan {

// Tensors in the files of other stacks. `options.array` names the tensor where there are several.

// A .safetensors file.
bool LooksLikeSafetensors(std::string_view start);
absl::StatusOr<std::unique_ptr<SampleSource>> OpenSafetensors(std::unique_ptr<ByteStream> in,
                                                              const SamplesOptions& options);

// What torch.save writes (a zip with a data.pkl), of a contiguous tensor or dictionaries of them;
// read without running the pickle (pickle.h).
// Is this zip one of them?
absl::StatusOr<bool> IsTorchFile(const std::string& path);
absl::StatusOr<std::unique_ptr<SampleSource>> OpenTorchFile(const std::string& path,
                                                            const SamplesOptions& options);
// The same from wherever `open`, which is called twice, finds the archive that errors call `name`.
// With `one_sample` all of the tensor is one sample.
using TorchOpener = std::function<absl::StatusOr<std::unique_ptr<ArchiveReader>>()>;
absl::StatusOr<std::unique_ptr<SampleSource>> OpenTorch(const TorchOpener& open,
                                                        const std::string& name, bool one_sample,
                                                        const SamplesOptions& options);

}  // namespace mergeplan

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/network/script.h"
#include "adapters/network/signature.h"

namespace mergeplan::network::testing {

// The folder that MERGEPLAN_SHARED names; empty where it names none (then a test skips).
std::string SharedFolder();

// A sidecar of a small network: x0 prediction of `d` numbers, told t / T.
Signature SmallSignature(int d, Prediction prediction = Prediction::kSample,
                         const std::string& dtype = "float32");

// The same, told one of so many classes.
Signature WithClasses(Signature signature, std::int64_t classes);

// A TorchScript network of one hidden layer that gets z and time: two matrices, two biases, a row
// for the time's features; parameters from `seed`.
std::unique_ptr<Module> SmallNetwork(const Signature& signature, int hidden, std::uint64_t seed);

// F = weight * z, one parameter for each dimension.
std::unique_ptr<Module> DiagonalNetwork(const Signature& signature,
                                        const std::vector<double>& weight);

// A TorchScript network whose forward has this body (Python, with self, z, time and label where
// there are classes) and the parameters w (d) and buffer count (1).
std::unique_ptr<Module> NetworkOf(const Signature& signature, const std::string& body);
// The same as a file.
void WriteNetworkOf(const Signature& signature, const std::string& body, const std::string& path);

// Two parameters w and u that are one tensor; no parameter at all.
std::unique_ptr<Module> TiedNetwork(const Signature& signature);
std::unique_ptr<Module> FixedNetwork(const Signature& signature);

// Without syncing, for files that are damaged by the hundred.
void WritePlain(const std::string& path, const std::string& bytes);

// All numbers of all parameters, as double.
std::vector<double> Numbers(const Module& module);

}  // namespace mergeplan::network::testing

#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace mergeplan {

// Options of commands that run one half of an autoencoder over samples: how, and where. `does` is
// what they do with pictures ("Encode").
template <typename Arguments>
void AddVaeWork(CLI::App* command, Arguments& a, const char* does) {
  command->add_option("--batch", a.batch, "Samples at a time")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option(
          "--tile", a.tile,
          absl::StrCat(does,
                       " pictures larger than this many pixels in overlapping tiles; 0: whole"))
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{65536}))
      ->capture_default_str();
  command->add_option("--device", a.device, "cpu, cuda or cuda:N")->capture_default_str();
  command->add_option("--threads", a.threads, "0: all")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
}

}  // namespace mergeplan

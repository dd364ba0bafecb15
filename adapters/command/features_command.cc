#include "adapters/command/features_command.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include <ATen/ATen.h>
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/judge/classifier_training.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/output_files.h"
#include "adapters/runtime/signals.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

void Say(const judge::Classifier& classifier) {
  const judge::ClassifierConfig& config = classifier.config();
  std::printf("%s: %d features of pictures [%s], %d classes, %lld parameters\n",
              config.name.c_str(), classifier.features(), absl::StrJoin(config.shape, ", ").c_str(),
              config.classes, static_cast<long long>(classifier.size()));
  std::printf("trained on %s\n", config.training.c_str());
  if (config.tested > 0) {
    std::printf("accuracy %.4f on %lld pictures it was not trained on\n", config.accuracy,
                static_cast<long long>(config.tested));
  }
}

absl::Status Features(const FeaturesArguments& a) {
  if (a.data.has_value() != a.labels.has_value()) {
    return Misuse("--data and --labels: one needs the other");
  }
  if (a.test_data.has_value() != a.test_labels.has_value()) {
    return Misuse("--test-data and --test-labels: one needs the other");
  }
  StopOnSignals();
  SetThreads(a.threads);
  RestoreStdout();
  absl::StatusOr<judge::Labelled> test;
  if (a.test_data) {
    test = judge::ReadLabelled(*a.test_data, *a.test_labels);
    if (!test.ok()) return test.status();
  }
  const auto fits = [&](const judge::Classifier& classifier) {
    if (!a.test_data || test->labels.max().item<std::int64_t>() < classifier.config().classes) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(*a.test_labels, ": holds a class beyond the ",
                                                   classifier.config().classes,
                                                   " that the classifier knows"));
  };
  if (!a.data) {
    MP_ASSIGN_OR_RETURN(const judge::Classifier classifier, judge::Classifier::Load(a.folder));
    Say(classifier);
    if (!a.test_data) return absl::OkStatus();
    MP_RETURN_IF_ERROR(fits(classifier));
    MP_ASSIGN_OR_RETURN(const double accuracy, judge::Accuracy(classifier, *test));
    std::printf("accuracy %.4f on the %lld pictures of %s\n", accuracy,
                static_cast<long long>(test->labels.size(0)), a.test_data->c_str());
    return absl::OkStatus();
  }
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  MP_RETURN_IF_ERROR(CheckNewFolder(a.folder));
  MP_ASSIGN_OR_RETURN(const judge::Labelled data, judge::ReadLabelled(*a.data, *a.labels));
  const std::int64_t classes = data.labels.max().item<std::int64_t>() + 1;
  if (classes < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(*a.labels, ": holds the class 0 only, expected two classes or more"));
  }
  if (a.test_data) {
    if (test->pixels.sizes().slice(1) != data.pixels.sizes().slice(1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          *a.test_data, ": holds pictures [", absl::StrJoin(test->pixels.sizes().slice(1), ", "),
          "], expected [", absl::StrJoin(data.pixels.sizes().slice(1), ", "), "] as ", *a.data));
    }
    if (const std::int64_t most = test->labels.max().item<std::int64_t>(); most >= classes) {
      return absl::InvalidArgumentError(absl::StrCat(*a.test_labels, ": holds the class ", most,
                                                     ", expected 0 to ", classes - 1, " as ",
                                                     *a.labels));
    }
  }
  judge::ClassifierTraining options;
  options.epochs = a.epochs;
  options.batch = a.batch;
  options.lr = a.lr;
  options.seed = static_cast<std::uint64_t>(a.seed);
  options.stop = StopRequested;
  options.epoch = [&](int epoch, double loss) {
    std::printf("epoch %d of %d: mean loss %.4f, %.0f s\n", epoch, a.epochs, loss, seconds());
    std::fflush(stdout);
  };
  MP_ASSIGN_OR_RETURN(judge::Classifier classifier, judge::TrainClassifier(data, a.name, options));
  if (a.test_data) {
    MP_ASSIGN_OR_RETURN(classifier.config().accuracy, judge::Accuracy(classifier, *test));
    classifier.config().tested = test->labels.size(0);
  }
  MP_RETURN_IF_ERROR(classifier.Save(a.folder));
  Say(classifier);
  return absl::OkStatus();
}

}  // namespace

int RunFeaturesCommand(const FeaturesArguments& arguments) {
  const absl::Status status = Features(arguments);
  if (status.ok()) return 0;
  std::fprintf(stderr, "mergeplan features: %s\n", std::string(status.message()).c_str());
  if (absl::IsCancelled(status)) return 3;
  return IsMisuse(status) ? 2 : 1;
}

}  // namespace mergeplan

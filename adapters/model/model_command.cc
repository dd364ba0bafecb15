#include "adapters/model/model_command.h"

#include <cstdio>

#include "adapters/layers/model_folder.h"
#include "adapters/model/compare.h"
#include "adapters/model/describe.h"
#include "adapters/unet/unet.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

absl::StatusOr<nlohmann::json> Look(const ModelArguments& arguments) {
  MP_ASSIGN_OR_RETURN(const std::string folder, layers::FindModelFolder(arguments.folder, "unet"));
  MP_ASSIGN_OR_RETURN(const auto net, unet::UNet2d::Load(folder));
  nlohmann::json model = model::DescribeUNet(*net, folder);
  if (arguments.compare) {
    MP_ASSIGN_OR_RETURN(const auto differences, model::CompareUNet(*net, *arguments.compare));
    model["compare"] =
        model::DescribeComparison(differences, *arguments.compare, arguments.tolerance);
  }
  return model;
}

}  // namespace

int RunModelCommand(const ModelArguments& arguments) {
  const absl::StatusOr<nlohmann::json> model = Look(arguments);
  if (!model.ok()) {
    std::fprintf(stderr, "mergeplan model: %s\n", std::string(model.status().message()).c_str());
    return 1;
  }
  // Paths need not be UTF-8.
  const std::string text =
      arguments.json ? model->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                     : model::Describe(*model);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return model->contains("compare") && !(*model)["compare"]["within"].get<bool>() ? 1 : 0;
}

}  // namespace mergeplan

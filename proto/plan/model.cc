#include "proto/plan/model.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/model_gpt2.h"

namespace troupe {
namespace {

struct Architecture {
  const char* name;
  absl::StatusOr<std::vector<Unit>> (*units)(const ModelSpec& model,
                                             const MicroBatchShape& shape);
  int64_t (*lookup_parameters)(const ModelSpec& model);
};

constexpr Architecture kArchitectures[] = {
    {"gpt2", Gpt2Units, Gpt2LookupParameters},
};

absl::StatusOr<Architecture> FindArchitecture(const std::string& name) {
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return architecture;
    absl::StrAppend(&known, known.empty() ? "" : ", ", architecture.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.architecture: no architecture is named '", name,
                   "'; use one of: ", known));
}

}  // namespace

absl::StatusOr<std::vector<Unit>> ModelUnits(const ModelSpec& model,
                                             const MicroBatchShape& shape) {
  ASSIGN_OR_RETURN(const Architecture architecture,
                   FindArchitecture(model.architecture()));
  return architecture.units(model, shape);
}

int64_t ParameterCount(const std::vector<Unit>& units) {
  int64_t count = 0;
  for (const Unit& unit : units) {
    for (const Parameter& parameter : unit.parameters()) {
      int64_t elements = 1;
      for (const int64_t dim : parameter.shape()) elements *= dim;
      count += elements;
    }
  }
  return count;
}

double ModelFlopsPerToken(const ModelSpec& model, int64_t sequence_length) {
  const auto architecture = FindArchitecture(model.architecture());
  CHECK_OK(architecture.status());
  const auto units = architecture->units(
      model, {.sequences = 1, .sequence_length = sequence_length});
  CHECK_OK(units.status());
  const double multiplied = static_cast<double>(
      ParameterCount(*units) - architecture->lookup_parameters(model));
  return 6.0 * multiplied + 12.0 * model.num_hidden_layers() *
                                model.hidden_size() *
                                static_cast<double>(sequence_length);
}

}  // namespace troupe

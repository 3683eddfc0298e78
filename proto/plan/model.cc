#include "proto/plan/model.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/model_gpt2.h"
#include "proto/plan/model_llama.h"

namespace troupe {
namespace {

struct Architecture {
  const char* name;
  // Fields that other architectures do not have.
  std::vector<std::string> own_fields;
  absl::Status (*resolve)(ModelSpec& model);
  absl::Status (*check)(const ModelSpec& model);
  std::vector<Unit> (*units)(const ModelSpec& model,
                             const MicroBatchShape& shape);
  int64_t (*lookup_parameters)(const ModelSpec& model);
  int64_t (*attention_width)(const ModelSpec& model);
  bool weights_are_in_out;
};

std::vector<Architecture> Architectures() {
  return {
      {"gpt2",
       {"layer_norm_epsilon"},
       ResolveGpt2,
       CheckGpt2,
       Gpt2Units,
       Gpt2LookupParameters,
       Gpt2AttentionWidth,
       /*weights_are_in_out=*/true},
      {"llama",
       {"num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta",
        "rope_scaling", "attention_bias", "mlp_bias"},
       ResolveLlama,
       CheckLlama,
       LlamaUnits,
       LlamaLookupParameters,
       LlamaAttentionWidth,
       /*weights_are_in_out=*/false},
  };
}

absl::StatusOr<Architecture> FindArchitecture(const std::string& name) {
  std::vector<std::string> names;
  for (const Architecture& architecture : Architectures()) {
    if (name == architecture.name) return architecture;
    names.push_back(architecture.name);
  }
  RETURN_IF_ERROR(CheckPresent({.present = !name.empty(),
                                .path = "model.architecture",
                                .meaning = OrList(names)}));
  return CheckName("model.architecture", name, names);
}

// Refuses fields that only other architectures have.
absl::Status CheckForeignFields(const ModelSpec& model) {
  for (const Architecture& other : Architectures()) {
    if (model.architecture() == other.name) continue;
    for (const std::string& name : other.own_fields) {
      const auto* field = ModelSpec::descriptor()->FindFieldByName(name);
      CHECK(field != nullptr) << name;
      if (!ModelSpec::GetReflection()->HasField(model, field)) continue;
      return FieldError(absl::StrCat("model.", name),
                        absl::StrCat("is a field of ", other.name, ", not of ",
                                     model.architecture(), "; leave it out"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveModel(ModelSpec& model) {
  ASSIGN_OR_RETURN(const Architecture architecture,
                   FindArchitecture(model.architecture()));
  RETURN_IF_ERROR(CheckForeignFields(model));
  RETURN_IF_ERROR(CheckModelSizes(model));
  SetModelDefaults(model);
  RETURN_IF_ERROR(CheckModelDefaults(model));
  return architecture.resolve(model);
}

absl::StatusOr<std::vector<Unit>> ModelUnits(const ModelSpec& model,
                                             const MicroBatchShape& shape) {
  ASSIGN_OR_RETURN(const Architecture architecture,
                   FindArchitecture(model.architecture()));
  RETURN_IF_ERROR(CheckForeignFields(model));
  RETURN_IF_ERROR(CheckModelSizes(model));
  RETURN_IF_ERROR(CheckModelDefaults(model));
  RETURN_IF_ERROR(architecture.check(model));
  RETURN_IF_ERROR(CheckMicroBatch(model, shape));
  return architecture.units(model, shape);
}

bool BlockWeightsAreInOut(const ModelSpec& model) {
  const auto architecture = FindArchitecture(model.architecture());
  CHECK_OK(architecture.status());
  return architecture->weights_are_in_out;
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
  const auto units =
      ModelUnits(model, {.sequences = 1, .sequence_length = sequence_length});
  CHECK_OK(units.status());
  const double multiplied = static_cast<double>(
      ParameterCount(*units) - architecture->lookup_parameters(model));
  return 6.0 * multiplied +
         12.0 * model.num_hidden_layers() *
             static_cast<double>(architecture->attention_width(model)) *
             static_cast<double>(sequence_length);
}

}  // namespace troupe

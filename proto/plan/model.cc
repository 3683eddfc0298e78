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
#include "proto/plan/model_synthetic.h"

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
  // Has the sizes that transformers share, and needs them.
  bool transformer;
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
       /*weights_are_in_out=*/true,
       /*transformer=*/true},
      {"llama",
       {"num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta",
        "rope_scaling", "attention_bias", "mlp_bias"},
       ResolveLlama,
       CheckLlama,
       LlamaUnits,
       LlamaLookupParameters,
       LlamaAttentionWidth,
       /*weights_are_in_out=*/false,
       /*transformer=*/true},
      {"synthetic",
       {"units", "forward_us", "backward_input_us", "backward_weight_us",
        "activation_bytes", "parameter_bytes"},
       ResolveSynthetic,
       CheckSynthetic,
       SyntheticUnits,
       // Nothing is multiplied.
       +[](const ModelSpec& model) {
         return ParameterCount(SyntheticUnits(model, {.sequences = 1}));
       },
       +[](const ModelSpec&) { return int64_t{0}; },
       /*weights_are_in_out=*/false,
       /*transformer=*/false},
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

bool HasModelField(const ModelSpec& model, const std::string& name) {
  const auto* field = ModelSpec::descriptor()->FindFieldByName(name);
  CHECK(field != nullptr) << name;
  const auto* reflection = ModelSpec::GetReflection();
  return field->is_repeated() ? reflection->FieldSize(model, field) > 0
                              : reflection->HasField(model, field);
}

absl::Status Foreign(const ModelSpec& model, const std::string& name,
                     absl::string_view of) {
  return FieldError(absl::StrCat("model.", name),
                    absl::StrCat("is a field of ", of, ", not of ",
                                 model.architecture(), "; leave it out"));
}

// Refuses fields that only other architectures have.
absl::Status CheckForeignFields(const ModelSpec& model,
                                const Architecture& own) {
  for (const Architecture& other : Architectures()) {
    if (model.architecture() == other.name) continue;
    for (const std::string& name : other.own_fields) {
      if (HasModelField(model, name)) return Foreign(model, name, other.name);
    }
  }
  if (own.transformer) return absl::OkStatus();
  for (const char* const name :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size",
        "max_position_embeddings", "intermediate_size", "initializer_range",
        "tie_word_embeddings", "hf"}) {
    if (HasModelField(model, name)) {
      return Foreign(model, name, "transformers");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const ModelSpec& model, const Architecture& own,
                        const MicroBatchShape& shape) {
  if (!own.transformer) return own.check(model);
  RETURN_IF_ERROR(CheckModelSizes(model));
  RETURN_IF_ERROR(CheckModelDefaults(model));
  RETURN_IF_ERROR(own.check(model));
  return CheckMicroBatch(model, shape);
}

}  // namespace

absl::Status ResolveModel(ModelSpec& model) {
  ASSIGN_OR_RETURN(const Architecture architecture,
                   FindArchitecture(model.architecture()));
  RETURN_IF_ERROR(CheckForeignFields(model, architecture));
  if (!architecture.transformer) return architecture.resolve(model);
  RETURN_IF_ERROR(CheckModelSizes(model));
  SetModelDefaults(model);
  RETURN_IF_ERROR(CheckModelDefaults(model));
  return architecture.resolve(model);
}

absl::StatusOr<std::vector<Unit>> ModelUnits(const ModelSpec& model,
                                             const MicroBatchShape& shape) {
  ASSIGN_OR_RETURN(const Architecture architecture,
                   FindArchitecture(model.architecture()));
  RETURN_IF_ERROR(CheckForeignFields(model, architecture));
  RETURN_IF_ERROR(CheckSizes(model, architecture, shape));
  return architecture.units(model, shape);
}

bool IsSynthetic(const ModelSpec& model) {
  return model.architecture() == "synthetic";
}

int UnitCount(const ModelSpec& model) {
  return IsSynthetic(model) ? model.units() : model.num_hidden_layers() + 2;
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

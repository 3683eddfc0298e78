#include "proto/plan/model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/parameter_of.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

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

bool Lists(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool HasField(const Architecture& architecture, const std::string& name) {
  return Lists(architecture.fields, name);
}

absl::Status Foreign(const ModelSpec& model, const std::string& name,
                     absl::string_view of) {
  return FieldError(absl::StrCat("model.", name),
                    absl::StrCat("is a field of ", of, ", not of ",
                                 model.architecture(), "; leave it out"));
}

// Refuses fields that others have and this one has not.
absl::Status CheckForeignFields(const ModelSpec& model,
                                const Architecture& own) {
  const std::vector<Architecture> all = Architectures();
  for (const Architecture& other : all) {
    for (const std::string& name : other.fields) {
      if (HasField(own, name) || !HasModelField(model, name)) continue;
      std::vector<std::string> owners;
      for (const Architecture& owner : all) {
        if (HasField(owner, name)) owners.push_back(owner.name);
      }
      return Foreign(model, name, OrList(owners));
    }
  }
  if (own.transformer) return absl::OkStatus();
  for (const char* const name :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size",
        "max_position_embeddings", "intermediate_size", "initializer_range",
        "tie_word_embeddings", "hf"}) {
    if (!HasModelField(model, name) || Lists(own.shared, name)) continue;
    return Foreign(model, name, "transformers");
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const ModelSpec& model, const Architecture& own,
                        const MicroBatchShape& shape) {
  if (!own.transformer) {
    RETURN_IF_ERROR(own.check(model));
    return IsSynthetic(model) ? absl::OkStatus()
                              : CheckMicroBatch(model, shape);
  }
  RETURN_IF_ERROR(CheckModelSizes(model));
  RETURN_IF_ERROR(CheckModelDefaults(model));
  RETURN_IF_ERROR(own.check(model));
  return CheckMicroBatch(model, shape);
}

}  // namespace

absl::Status ResolveModel(ModelSpec& model) {
  if (model.architecture().empty() && model.has_graph()) {
    model.set_architecture("graph");
  }
  ASSIGN_OR_RETURN(const Architecture architecture,
                   FindArchitecture(model.architecture()));
  RETURN_IF_ERROR(CheckForeignFields(model, architecture));
  if (!architecture.transformer) return architecture.resolve(model);
  RETURN_IF_ERROR(CheckModelSizes(model));
  SetModelDefaults(model);
  RETURN_IF_ERROR(CheckModelDefaults(model));
  return architecture.resolve(model);
}

absl::StatusOr<UnitList> ModelUnits(const ModelSpec& model,
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

bool IsGraph(const ModelSpec& model) { return model.architecture() == "graph"; }

int UnitCount(const ModelSpec& model) {
  const absl::StatusOr<Architecture> architecture =
      FindArchitecture(model.architecture());
  CHECK_OK(architecture.status());
  if (architecture->count == nullptr) return model.num_hidden_layers() + 2;
  const absl::StatusOr<int> count = architecture->count(model);
  CHECK_OK(count.status());
  return *count;
}

ModelSpec WithoutModules(ModelSpec model) {
  if (model.num_nextn_predict_layers() > 0) {
    model.set_num_nextn_predict_layers(0);
  }
  model.clear_mtp_coefficient();
  return model;
}

bool MayHaveLayersBehind(const ModelSpec& model) {
  const absl::StatusOr<Architecture> architecture =
      FindArchitecture(model.architecture());
  CHECK_OK(architecture.status());
  return architecture->layers_behind;
}

int64_t ElementsOf(const Parameter& parameter) {
  int64_t elements = 1;
  for (const int64_t dim : WholeShape(parameter)) elements *= dim;
  return elements;
}

int64_t ParameterCount(const std::vector<Unit>& units) {
  int64_t count = 0;
  for (const Unit& unit : units) {
    for (const Parameter& parameter : unit.parameters()) {
      if (!parameter.has_load()) count += ElementsOf(parameter);
    }
  }
  return count;
}

int64_t ActiveParameterCount(const UnitList& list) {
  double count = static_cast<double>(ParameterCount(list.units));
  for (const Unit& unit : list.units) {
    if (!unit.has_table()) continue;
    const UnitTable& table = list.tables[unit.table()];
    for (const Op& op : table.ops()) {
      const double share = RulesOf({table, op}).active_share;
      if (share == 1) continue;
      for (const int parameter : op.parameters()) {
        count -= static_cast<double>(
                     ElementsOf(ParameterOf(list.units, unit, parameter))) *
                 (1 - share);
      }
    }
  }
  return std::llround(count);
}

double ModelFlopsPerToken(const ModelSpec& model, int64_t sequence_length) {
  const auto list =
      ModelUnits(model, {.sequences = 1, .sequence_length = sequence_length});
  CHECK_OK(list.status());
  double flops = 0;
  for (const Unit& unit : list->units) {
    if (!unit.has_table()) continue;
    const UnitTable& table = list->tables[unit.table()];
    for (const Op& op : table.ops()) {
      const absl::optional<double> counted = RulesOf({table, op}).model_flops;
      flops += counted.value_or(0);
      if (counted.has_value()) continue;
      for (const int parameter : op.parameters()) {
        const Parameter& of = ParameterOf(list->units, unit, parameter);
        if (of.has_load()) continue;
        flops += 6.0 * static_cast<double>(ElementsOf(of));
      }
    }
  }
  return flops;
}

}  // namespace troupe

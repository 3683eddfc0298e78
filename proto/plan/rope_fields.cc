#include "proto/plan/rope_fields.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/rope.h"

namespace troupe {
namespace {

constexpr char kPath[] = "model.rope_scaling.";
constexpr double kFactorMax = 1e6;
constexpr double kThetaMax = 1e15;

std::vector<std::string> Types() {
  return {"linear", "dynamic", "llama3", "yarn", "longrope"};
}

bool IsType(const std::string& name) {
  const std::vector<std::string> types = Types();
  return std::find(types.begin(), types.end(), name) != types.end();
}

struct FieldRow {
  const char* name;
  std::vector<std::string> types;  // that have it
  const char* meaning;             // where it must be given, else null
};

std::vector<FieldRow> FieldRows() {
  return {
      {"factor", Types(), "how many times longer sequences may be"},
      {"original_max_position_embeddings",
       {"dynamic", "llama3", "yarn", "longrope"},
       nullptr},
      {"low_freq_factor", {"llama3"}, "1 as in Llama 3.1"},
      {"high_freq_factor", {"llama3"}, "4 as in Llama 3.1"},
      {"attention_factor", {"yarn", "longrope"}, nullptr},
      {"beta_fast", {"yarn"}, nullptr},
      {"beta_slow", {"yarn"}, nullptr},
      {"mscale", {"yarn"}, nullptr},
      {"mscale_all_dim", {"yarn"}, nullptr},
      {"truncate", {"yarn"}, nullptr},
      {"short_factor", {"longrope"}, "half as many numbers as turn of a head"},
      {"long_factor", {"longrope"}, "half as many numbers as turn of a head"},
  };
}

// A factor that is absent follows from the two lengths.
bool FactorIsRatio(const std::string& type) {
  return type == "yarn" || type == "longrope";
}

bool HasField(const RopeScaling& scaling, const std::string& name) {
  const auto* field = RopeScaling::descriptor()->FindFieldByName(name);
  CHECK(field != nullptr) << name;
  const auto* reflection = RopeScaling::GetReflection();
  return field->is_repeated() ? reflection->FieldSize(scaling, field) > 0
                              : reflection->HasField(scaling, field);
}

// Each type has all that it needs and nothing of another's.
absl::Status CheckFieldsOfType(const RopeScaling& scaling) {
  for (const FieldRow& row : FieldRows()) {
    const bool own = std::find(row.types.begin(), row.types.end(),
                               scaling.type()) != row.types.end();
    const std::string path = absl::StrCat(kPath, row.name);
    if (own && row.meaning != nullptr) {
      RETURN_IF_ERROR(CheckPresent({.present = HasField(scaling, row.name),
                                    .path = path,
                                    .meaning = row.meaning}));
    }
    if (!own && HasField(scaling, row.name)) {
      return FieldError(
          path, absl::StrCat("is a field of ", OrList(row.types), ", not of ",
                             scaling.type(), "; leave it out"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLlama3(const RopeScaling& scaling) {
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(kPath, "low_freq_factor"),
                              scaling.low_freq_factor(),
                              {.min = 0, .max = kFactorMax, .min_open = true}));
  return CheckNumber(
      absl::StrCat(kPath, "high_freq_factor"), scaling.high_freq_factor(),
      {.min = scaling.low_freq_factor(), .max = kFactorMax, .min_open = true});
}

absl::Status CheckYarn(const RopeScaling& scaling) {
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(kPath, "beta_slow"),
                              scaling.beta_slow(),
                              {.min = 0, .max = kFactorMax, .min_open = true}));
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(kPath, "beta_fast"),
                              scaling.beta_fast(),
                              {.min = scaling.beta_slow(), .max = kFactorMax}));
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(kPath, "mscale"), scaling.mscale(),
                              {.min = 0, .max = kFactorMax}));
  return CheckNumber(absl::StrCat(kPath, "mscale_all_dim"),
                     scaling.mscale_all_dim(), {.min = 0, .max = kFactorMax});
}

absl::Status CheckLongRope(const ModelSpec& model) {
  const RopeScaling& scaling = model.rope_scaling();
  const int pairs = static_cast<int>(RotaryColumns(model) / 2);
  for (const auto& [name, factors] :
       {std::pair{"short_factor", &scaling.short_factor()},
        std::pair{"long_factor", &scaling.long_factor()}}) {
    const std::string path = absl::StrCat(kPath, name);
    if (factors->size() != pairs) {
      return FieldError(
          path, absl::StrCat("has ", factors->size(), " numbers; give ", pairs,
                             ", half of the ", 2 * pairs,
                             " columns of a head that turn"));
    }
    for (const double factor : *factors) {
      RETURN_IF_ERROR(CheckNumber(
          path, factor, {.min = 0, .max = kFactorMax, .min_open = true}));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckScaling(const ModelSpec& model) {
  const RopeScaling& scaling = model.rope_scaling();
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(kPath, "factor"), scaling.factor(),
                              {.min = 1, .max = kFactorMax}));
  if (scaling.type() == "linear") return absl::OkStatus();
  RETURN_IF_ERROR(
      CheckInteger(absl::StrCat(kPath, "original_max_position_embeddings"),
                   scaling.original_max_position_embeddings(),
                   {.min = 2, .max = kModelPositionsMax}));
  if (scaling.has_attention_factor()) {
    RETURN_IF_ERROR(CheckNumber(
        absl::StrCat(kPath, "attention_factor"), scaling.attention_factor(),
        {.min = 0, .max = kFactorMax, .min_open = true}));
  }
  if (scaling.type() == "llama3") return CheckLlama3(scaling);
  if (scaling.type() == "yarn") return CheckYarn(scaling);
  if (scaling.type() == "longrope") return CheckLongRope(model);
  if (RotaryColumns(model) > 2) return absl::OkStatus();
  return FieldError(absl::StrCat(kPath, "type"),
                    "dynamic needs 4 columns of a head that turn, or more");
}

}  // namespace

void SetRopeDefaults(ModelSpec& model) {
  if (!model.has_rope_theta()) model.set_rope_theta(10000);
  if (!model.has_rope_scaling()) return;
  RopeScaling& scaling = *model.mutable_rope_scaling();
  const std::string& type = scaling.type();
  if (IsType(type) && type != "linear" &&
      !scaling.has_original_max_position_embeddings()) {
    scaling.set_original_max_position_embeddings(
        model.max_position_embeddings());
  }
  if (FactorIsRatio(type) && !scaling.has_factor() &&
      scaling.original_max_position_embeddings() > 0) {
    const double ratio = static_cast<double>(model.max_position_embeddings()) /
                         scaling.original_max_position_embeddings();
    scaling.set_factor(std::max(ratio, 1.0));
  }
  if (type != "yarn") return;
  if (!scaling.has_beta_fast()) scaling.set_beta_fast(32);
  if (!scaling.has_beta_slow()) scaling.set_beta_slow(1);
  if (!scaling.has_truncate()) scaling.set_truncate(true);
}

absl::Status CheckRope(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckNumber("model.rope_theta", model.rope_theta(),
                              {.min = 1, .max = kThetaMax, .min_open = true}));
  if (!model.has_rope_scaling()) return absl::OkStatus();
  const RopeScaling& scaling = model.rope_scaling();
  const std::string path = absl::StrCat(kPath, "type");
  RETURN_IF_ERROR(CheckPresent({.present = !scaling.type().empty(),
                                .path = path,
                                .meaning = OrList(Types())}));
  RETURN_IF_ERROR(CheckName(path, scaling.type(), Types()));
  RETURN_IF_ERROR(CheckFieldsOfType(scaling));
  return CheckScaling(model);
}

}  // namespace troupe

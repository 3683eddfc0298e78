// A model that computes nothing: units that take the time they are given, by
// waiting, and hold and move the bytes they are given. So the schedules of many
// workers can be seen on a machine with few cores.
//
// All units are of kind SYNTHETIC and have no ops, in stages like any other;
// each has all three passes, the first one too, and keeps its own output from
// its forward to the end of its backward pass, so that ranks keep as many
// activations as the papers on schedules say. A unit's parameter is one f32
// vector, "synthetic.<unit>.weight", whose gradient stays zero.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/fields.h"
#include "proto/plan/sum_names.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr int kUnitsMax = 4096;
constexpr double kMicrosecondsMax = 60e6;
constexpr int64_t kBytesMax = int64_t{1} << 40;
constexpr int64_t kF32Bytes = 4;
// What waits for a transfer waits for its bytes, so there are some.
constexpr int64_t kActivationBytesMin = 64;

// Of unit u: a field with one value is that of all units.
template <typename List>
auto ValueOf(const List& values, int u) {
  return values.size() == 1 ? values.Get(0) : values.Get(u);
}

absl::Status CheckCount(absl::string_view path, int values, int units) {
  if (values == 1 || values == units) return absl::OkStatus();
  return FieldError(path, absl::StrCat(values, " values for model.units ",
                                       units, "; give one, or ", units));
}

absl::Status CheckTimes(absl::string_view path,
                        const google::protobuf::RepeatedField<double>& times,
                        int units) {
  RETURN_IF_ERROR(CheckCount(path, times.size(), units));
  for (const double time : times) {
    RETURN_IF_ERROR(
        CheckNumber(path, time, {.min = 0, .max = kMicrosecondsMax}));
  }
  return absl::OkStatus();
}

template <typename List>
absl::Status CheckBytes(absl::string_view path, const List& sizes, int units) {
  RETURN_IF_ERROR(CheckCount(path, sizes.size(), units));
  for (const int64_t bytes : sizes) {
    RETURN_IF_ERROR(CheckInteger(path, bytes, {.min = 0, .max = kBytesMax}));
  }
  return absl::OkStatus();
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(
      CheckInteger("model.units", model.units(), {.min = 1, .max = kUnitsMax}));
  RETURN_IF_ERROR(
      CheckTimes("model.forward_us", model.forward_us(), model.units()));
  RETURN_IF_ERROR(CheckTimes("model.backward_input_us",
                             model.backward_input_us(), model.units()));
  RETURN_IF_ERROR(CheckTimes("model.backward_weight_us",
                             model.backward_weight_us(), model.units()));
  RETURN_IF_ERROR(CheckBytes("model.activation_bytes", model.activation_bytes(),
                             model.units()));
  return CheckBytes("model.parameter_bytes", model.parameter_bytes(),
                    model.units());
}

absl::Status Resolve(ModelSpec& model) {
  RETURN_IF_ERROR(CheckPresent({.present = model.has_units(),
                                .path = "model.units",
                                .meaning = "the number of units"}));
  RETURN_IF_ERROR(
      CheckPresent({.present = !model.forward_us().empty(),
                    .path = "model.forward_us",
                    .meaning = "microseconds of a unit's forward pass"}));
  if (model.backward_input_us().empty()) {
    *model.mutable_backward_input_us() = model.forward_us();
  }
  if (model.backward_weight_us().empty()) {
    *model.mutable_backward_weight_us() = model.forward_us();
  }
  if (model.activation_bytes().empty()) {
    model.add_activation_bytes(kActivationBytesMin);
  }
  if (model.parameter_bytes().empty()) model.add_parameter_bytes(0);
  return Check(model);
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  constexpr double kSeconds = 1e-6;
  UnitList units;
  for (int u = 0; u < model.units(); ++u) {
    UnitBuilder builder(Unit::SYNTHETIC,
                        {.index = u, .layer = u, .shape = shape});
    const int64_t elements = ValueOf(model.parameter_bytes(), u) / kF32Bytes;
    if (elements > 0) {
      builder.Parameter(absl::StrCat("synthetic.", u, ".weight"),
                        {DimOf({{Dim::HIDDEN, elements}})}, Parameter::ZEROS);
    }
    Unit unit = std::move(builder).Build().unit;
    unit.set_activation_bytes(std::max<int64_t>(
        ValueOf(model.activation_bytes(), u), kActivationBytesMin));
    unit.mutable_forward()->set_wait_seconds(ValueOf(model.forward_us(), u) *
                                             kSeconds);
    unit.mutable_backward_input()->set_wait_seconds(
        ValueOf(model.backward_input_us(), u) * kSeconds);
    unit.mutable_backward_weight()->set_wait_seconds(
        ValueOf(model.backward_weight_us(), u) * kSeconds);
    if (u + 1 == model.units()) {
      Unit::Addend& tokens = *unit.add_addends();
      tokens.set_sum(kTokensSum);
      tokens.set_elements(1);
    }
    units.AppendWithoutOps(std::move(unit));
  }
  return units;
}

}  // namespace

Architecture Synthetic() {
  return {
      .name = "synthetic",
      .fields = {"units", "forward_us", "backward_input_us",
                 "backward_weight_us", "activation_bytes", "parameter_bytes"},
      .resolve = Resolve,
      .check = Check,
      .units = Units,
      .count = [](const ModelSpec& model) -> absl::StatusOr<int> {
        return model.units();
      },
      .transformer = false};
}

}  // namespace troupe

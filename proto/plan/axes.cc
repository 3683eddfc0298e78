#include "proto/plan/axes.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace troupe {

int Power(int base, int exponent) {
  int power = 1;
  while (exponent-- > 0) power *= base;
  return power;
}

int Root(int value, int exponent) {
  int root = 1;
  while (Power(root + 1, exponent) <= value) ++root;
  return root;
}

namespace {

// The axes that share the ranks of parallelism.tensor.
std::vector<const char*> TensorAxes(const ParallelismSpec& parallelism) {
  if (parallelism.tensor_method() != "3d") return {"tensor"};
  return {"tensor_x", "tensor_y", "tensor_z"};
}

// Places on each of them.
int TensorSide(const ParallelismSpec& parallelism) {
  return Root(parallelism.tensor(),
              static_cast<int>(TensorAxes(parallelism).size()));
}

}  // namespace

std::vector<Axis> AxesOf(const ParallelismSpec& parallelism) {
  const auto size = [](bool given, int value) { return given ? value : 1; };
  std::vector<Axis> axes;
  const auto add = [&axes](const char* name, int size) {
    axes.emplace_back();
    axes.back().set_name(name);
    axes.back().set_size(size);
  };
  add("pipeline", size(parallelism.has_pipeline(), parallelism.pipeline()));
  add("data", size(parallelism.has_data(), parallelism.data()));
  // Also of jobs that nobody has checked yet.
  const int ulysses = std::max(parallelism.ulysses_size(), 1);
  if (parallelism.context() > 1) {
    add("context", parallelism.context() / ulysses);
  }
  if (ulysses > 1) add("ulysses", ulysses);
  if (parallelism.tensor() > 1) {
    const int side = TensorSide(parallelism);
    for (const char* const axis : TensorAxes(parallelism)) add(axis, side);
  }
  return axes;
}

SizeField SizeFieldOf(const ParallelismSpec& parallelism,
                      absl::string_view axis) {
  const int size = SizeOfAxis(parallelism, axis);
  if (axis == "ulysses") {
    return {.name = "parallelism.ulysses_size",
            .value = size,
            .part_of = "parallelism.context",
            .whole = parallelism.context()};
  }
  if (absl::StartsWith(axis, "tensor")) {
    SizeField field = {
        .name = "parallelism.tensor",
        .power = static_cast<int>(TensorAxes(parallelism).size())};
    field.value = field.ValueFor(size);
    return field;
  }
  const int ranks = axis == "context" ? SizeOfAxis(parallelism, "ulysses") : 1;
  return {.name = absl::StrCat("parallelism.", axis),
          .value = size * ranks,
          .ranks = ranks};
}

bool MayBe(const SizeField& field, int size) {
  if (field.part_of.empty()) return size >= (field.ranks > 1 ? 2 : 1);
  return size >= 2 && size < field.whole && field.whole % size == 0;
}

int SizeOfAxis(const ParallelismSpec& parallelism, absl::string_view name) {
  for (const Axis& axis : AxesOf(parallelism)) {
    if (axis.name() == name) return axis.size();
  }
  return 1;
}

bool Is3D(const ParallelismSpec& parallelism) {
  return SizeOfAxis(parallelism, "tensor_x") > 1;
}

}  // namespace troupe

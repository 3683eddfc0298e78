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
  const auto fits = [&](int root) {
    int left = value;
    for (int i = 0; i < exponent; ++i) left /= root;
    return left > 0;
  };
  int root = 1;
  while (fits(root + 1)) ++root;
  return root;
}

bool IsPower(int value, int exponent) {
  return value > 1 && Power(Root(value, exponent), exponent) == value;
}

std::vector<int> DepthsOf(int ranks) {
  std::vector<int> depths;
  for (int side = Root(std::max(ranks / 2, 1), 2); side >= 2; --side) {
    if (ranks % (side * side) == 0) depths.push_back(ranks / (side * side));
  }
  return depths;
}

namespace {

// The axes that share the ranks of parallelism.tensor: those of one size, and
// one of another, `depth`.
struct TensorMethod {
  const char* name;
  std::vector<const char*> sides;
  const char* depth = nullptr;
};
const TensorMethod& MethodOf(const ParallelismSpec& parallelism) {
  static const auto* const kMethods = new std::vector<TensorMethod>{
      {"1d", {"tensor"}},
      {"2d", {"tensor_row", "tensor_column"}},
      {"2.5d", {"tensor_row", "tensor_column"}, "tensor_depth"},
      {"3d", {"tensor_x", "tensor_y", "tensor_z"}},
  };
  for (const TensorMethod& method : *kMethods) {
    if (parallelism.tensor_method() == method.name) return method;
  }
  return kMethods->front();
}

int TensorDepth(const ParallelismSpec& parallelism) {
  if (MethodOf(parallelism).depth == nullptr) return 1;
  if (parallelism.has_tensor_depth()) {
    return std::max(parallelism.tensor_depth(), 1);
  }
  const std::vector<int> depths = DepthsOf(parallelism.tensor());
  return depths.empty() ? 1 : depths.front();
}

// Places on each of the sides.
int TensorSide(const ParallelismSpec& parallelism) {
  return Root(parallelism.tensor() / TensorDepth(parallelism),
              static_cast<int>(MethodOf(parallelism).sides.size()));
}

}  // namespace

int ReplicasOf(const ParallelismSpec& parallelism) {
  const int ranks = parallelism.has_data() ? parallelism.data() : 1;
  // Also of jobs that nobody has checked yet.
  return parallelism.expert() > 1 ? ranks / parallelism.expert() : ranks;
}

std::vector<Axis> AxesOf(const ParallelismSpec& parallelism) {
  const auto size = [](bool given, int value) { return given ? value : 1; };
  std::vector<Axis> axes;
  const auto add = [&axes](const char* name, int size) {
    axes.emplace_back();
    axes.back().set_name(name);
    axes.back().set_size(size);
  };
  add("pipeline", size(parallelism.has_pipeline(), parallelism.pipeline()));
  add("data", ReplicasOf(parallelism));
  if (parallelism.expert() > 1) add("expert", parallelism.expert());
  if (parallelism.batch() > 1) add("batch", parallelism.batch());
  // Also of jobs that nobody has checked yet.
  const int ulysses = std::max(parallelism.ulysses_size(), 1);
  if (parallelism.context() > 1) {
    add("context", parallelism.context() / ulysses);
  }
  if (ulysses > 1) add("ulysses", ulysses);
  if (parallelism.tensor() > 1) {
    const TensorMethod& method = MethodOf(parallelism);
    const int depth = TensorDepth(parallelism);
    if (depth > 1) add(method.depth, depth);
    const int side = TensorSide(parallelism);
    for (const char* const axis : method.sides) add(axis, side);
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
    const int sides = static_cast<int>(MethodOf(parallelism).sides.size());
    SizeField field = {.name = "parallelism.tensor"};
    field.in_layers = MethodOf(parallelism).depth != nullptr;
    if (axis == "tensor_depth") {
      field.ranks = Power(TensorSide(parallelism), sides);
    } else {
      field.ranks = TensorDepth(parallelism);
      field.power = sides;
      field.layers = field.ranks;
    }
    field.value = field.ValueFor(size);
    return field;
  }
  const int ranks = axis == "context" ? SizeOfAxis(parallelism, "ulysses") : 1;
  return {.name = absl::StrCat("parallelism.", axis),
          .value = size * ranks,
          .ranks = ranks};
}

std::string SizeField::TextFor(int size) const {
  std::string text = absl::StrCat(ValueFor(size));
  if (!in_layers) {
    // One rank has no method.
    if (power > 1 && size == 1) {
      absl::StrAppend(&text, " without parallelism.tensor_method");
    }
    return text;
  }
  const int depth = layers > 0 ? layers : size;
  if (layers > 0 && size == 1) {
    return absl::StrCat(depth, " without parallelism.tensor_method");
  }
  return depth == 1
             ? absl::StrCat(text, " with parallelism.tensor_method: 2d")
             : absl::StrCat(text, " with parallelism.tensor_depth: ", depth);
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

absl::string_view TensorMethodOf(const ParallelismSpec& parallelism) {
  return parallelism.tensor() > 1 ? MethodOf(parallelism).name : "1d";
}

bool Is3D(const ParallelismSpec& parallelism) {
  return TensorMethodOf(parallelism) == "3d";
}

}  // namespace troupe

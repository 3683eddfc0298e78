#include "clients/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/checkpoint/tensor_reader.h"

namespace troupe {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{1} << 20;

// A tensor of one run's two states: later - decay x earlier, times `scale`.
struct Blend {
  std::string tensor;
  double decay = 0;
  double scale = 1;
};

class Side {
 public:
  static absl::StatusOr<Side> Open(const RunCheckpoints& run) {
    Side side;
    ASSIGN_OR_RETURN(side.after_, TensorReader::Open(run.after));
    if (!run.before.empty()) {
      ASSIGN_OR_RETURN(side.before_, TensorReader::Open(run.before));
    }
    return side;
  }

  const TensorReader& after() const { return *after_; }

  absl::Status Read(const Blend& blend, const FlatRange& range,
                    std::vector<double>& out) {
    later_.resize(range.count);
    RETURN_IF_ERROR(after_->ReadRange(blend.tensor, StoredDType::kF32, range,
                                      later_.data()));
    earlier_.assign(range.count, 0.0f);
    if (blend.decay != 0 && before_ != nullptr) {
      RETURN_IF_ERROR(before_->ReadRange(blend.tensor, StoredDType::kF32, range,
                                         earlier_.data()));
    }
    out.resize(range.count);
    for (int64_t i = 0; i < range.count; ++i) {
      out[i] = blend.scale * (later_[i] - blend.decay * earlier_[i]);
    }
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<TensorReader> after_;
  std::unique_ptr<TensorReader> before_;  // null: nothing came before
  std::vector<float> later_;
  std::vector<float> earlier_;
};

absl::StatusOr<double> Distance(const Blend& blend, int64_t elements, Side& run,
                                Side& reference) {
  double apart = 0;
  double norm = 0;
  std::vector<double> a;
  std::vector<double> b;
  for (int64_t at = 0; at < elements; at += kElementsAtOnce) {
    const FlatRange range = {.begin = at,
                             .count = std::min(kElementsAtOnce, elements - at)};
    RETURN_IF_ERROR(run.Read(blend, range, a));
    RETURN_IF_ERROR(reference.Read(blend, range, b));
    for (int64_t i = 0; i < range.count; ++i) {
      apart += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
  }
  // Where the reference is zero, any difference is all there is.
  if (norm == 0) return apart == 0 ? 0.0 : INFINITY;
  return std::sqrt(apart / norm);
}

// How the gradient of `parameter` follows from the optimizer's state; no tensor
// where it keeps none.
Blend GradientOf(const std::string& parameter, const OptimizerSpec& optimizer) {
  if (optimizer.name() == "adamw") {
    const double beta1 = optimizer.betas(0);
    return {.tensor = absl::StrCat("optimizer.exp_avg.", parameter),
            .decay = beta1,
            .scale = 1 / (1 - beta1)};
  }
  if (optimizer.momentum() == 0) return {};
  return {.tensor = absl::StrCat("optimizer.momentum.", parameter),
          .decay = optimizer.momentum()};
}

}  // namespace

absl::StatusOr<std::vector<TensorDistance>> CompareCheckpoints(
    const CompareOptions& options) {
  ASSIGN_OR_RETURN(Side run, Side::Open(options.run));
  ASSIGN_OR_RETURN(Side reference, Side::Open(options.reference));
  std::vector<TensorDistance> distances;
  for (const ManifestTensor& tensor : reference.after().manifest().tensors) {
    const ManifestTensor* same = run.after().Find(tensor.name);
    if (same == nullptr || same->shape != tensor.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.run.after, ": ", tensor.name,
                       " is not there as it is in ", options.reference.after));
    }
    if (absl::StartsWith(tensor.name, "optimizer.")) continue;
    const int64_t elements = ElementCount(tensor.shape);
    TensorDistance& distance =
        distances.emplace_back(TensorDistance{.name = tensor.name});
    ASSIGN_OR_RETURN(distance.weights, Distance({.tensor = tensor.name},
                                                elements, run, reference));
    const Blend gradient = GradientOf(tensor.name, options.optimizer);
    if (gradient.tensor.empty()) continue;
    ASSIGN_OR_RETURN(distance.gradient,
                     Distance(gradient, elements, run, reference));
  }
  std::stable_sort(distances.begin(), distances.end(),
                   [](const TensorDistance& a, const TensorDistance& b) {
                     return std::max(a.weights, a.gradient) >
                            std::max(b.weights, b.gradient);
                   });
  return distances;
}

}  // namespace troupe

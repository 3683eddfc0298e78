#include "clients/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
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

// Sums of squares over a tensor, or several.
struct Squares {
  double apart = 0;
  double norm = 0;  // of the reference
  double elements = 0;

  Squares& operator+=(const Squares& other) {
    apart += other.apart;
    norm += other.norm;
    elements += other.elements;
    return *this;
  }
};

absl::StatusOr<Squares> Measure(const Blend& blend, int64_t elements, Side& run,
                                Side& reference) {
  Squares squares;
  squares.elements = static_cast<double>(elements);
  std::vector<double> a;
  std::vector<double> b;
  for (int64_t at = 0; at < elements; at += kElementsAtOnce) {
    const FlatRange range = {.begin = at,
                             .count = std::min(kElementsAtOnce, elements - at)};
    RETURN_IF_ERROR(run.Read(blend, range, a));
    RETURN_IF_ERROR(reference.Read(blend, range, b));
    for (int64_t i = 0; i < range.count; ++i) {
      squares.apart += (a[i] - b[i]) * (a[i] - b[i]);
      squares.norm += b[i] * b[i];
    }
  }
  return squares;
}

double DistanceOf(const Squares& tensor, const Squares& all) {
  // NaN on either side must stay.
  const double least = all.norm / all.elements * tensor.elements;
  const double norm = tensor.norm < least ? least : tensor.norm;
  return RelativeDistance(std::sqrt(tensor.apart), std::sqrt(norm));
}

// Both ways, so that neither has one that the other lacks.
absl::Status CheckTensors(const TensorReader& these, const std::string& path,
                          const TensorReader& others,
                          const std::string& other_path) {
  for (const ManifestTensor& tensor : others.manifest().tensors) {
    const ManifestTensor* same = these.Find(tensor.name);
    if (same != nullptr && same->shape == tensor.shape) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", tensor.name, " is not there as it is in ", other_path));
  }
  return absl::OkStatus();
}

// How the gradient of `parameter` follows from the optimizer's state; no tensor
// where it keeps none. An average of weights says nothing of gradients, nor do
// means of squares.
Blend GradientOf(const std::string& parameter, const OptimizerSpec& optimizer) {
  const int rule = RuleOf(optimizer, parameter);
  const auto states = StatesOfRule(optimizer, rule);
  const OptimizerRow::Blends blends = RowOfRule(optimizer, rule).blends;
  if (states.empty() || states.front() == kAverageState ||
      blends == OptimizerRow::kNoGradients) {
    return {};
  }
  const OptimizerSpec settings = SettingsOf(optimizer, rule);
  Blend blend = {.tensor = StateTensorName(states.front(), parameter)};
  if (blends == OptimizerRow::kSum) {
    blend.decay = settings.momentum();
  } else {
    blend.decay = settings.betas(blends == OptimizerRow::kFirstMean ? 0 : 1);
    blend.scale = 1 / (1 - blend.decay);
  }
  return blend;
}

}  // namespace

double RelativeDistance(double apart, double norm) {
  if (norm == 0 && apart == 0) return 0;
  const double distance = apart / norm;
  return std::isfinite(norm) && std::isfinite(distance) ? distance : INFINITY;
}

absl::StatusOr<std::vector<TensorDistance>> CompareCheckpoints(
    const CompareOptions& options) {
  ASSIGN_OR_RETURN(Side run, Side::Open(options.run));
  ASSIGN_OR_RETURN(Side reference, Side::Open(options.reference));
  RETURN_IF_ERROR(CheckTensors(run.after(), options.run.after,
                               reference.after(), options.reference.after));
  RETURN_IF_ERROR(CheckTensors(reference.after(), options.reference.after,
                               run.after(), options.run.after));
  std::vector<TensorDistance> distances;
  std::vector<Squares> weights;
  std::vector<Squares> gradients;
  Squares all_weights;
  Squares all_gradients;
  for (const ManifestTensor& tensor : reference.after().manifest().tensors) {
    if (IsStateTensor(tensor.name)) continue;
    distances.push_back({.name = tensor.name});
    const int64_t elements = ElementCount(tensor.shape);
    ASSIGN_OR_RETURN(weights.emplace_back(), Measure({.tensor = tensor.name},
                                                     elements, run, reference));
    all_weights += weights.back();
    const Blend gradient = GradientOf(tensor.name, options.optimizer);
    gradients.emplace_back();
    // Of a parameter whose rule keeps no state, or that is frozen, nothing is
    // known.
    if (gradient.tensor.empty() ||
        reference.after().Find(gradient.tensor) == nullptr) {
      continue;
    }
    ASSIGN_OR_RETURN(gradients.back(),
                     Measure(gradient, elements, run, reference));
    all_gradients += gradients.back();
  }
  for (size_t i = 0; i < distances.size(); ++i) {
    distances[i].weights = DistanceOf(weights[i], all_weights);
    if (gradients[i].elements == 0) continue;
    distances[i].gradient = DistanceOf(gradients[i], all_gradients);
  }
  std::stable_sort(distances.begin(), distances.end(),
                   [](const TensorDistance& a, const TensorDistance& b) {
                     return std::max(a.weights, a.gradient) >
                            std::max(b.weights, b.gradient);
                   });
  return distances;
}

}  // namespace troupe

#include "scheduler/cluster/expert_loads.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

using Layer = ExpertLoads::Layer;
using Point = ExpertLoads::Point;

size_t CellsOf(const Point& point) {
  size_t cells = 0;
  for (const Layer& layer : point.layers) cells += layer.choices.size();
  return cells;
}

}  // namespace

void Join(ExpertLoads::Point& point, const ExpertLoads::Point& later) {
  point.last = later.last;
  for (const Layer& layer : later.layers) {
    const auto same =
        std::find_if(point.layers.begin(), point.layers.end(),
                     [&](const Layer& of) { return of.unit == layer.unit; });
    if (same == point.layers.end()) {
      point.layers.push_back(layer);
      continue;
    }
    same->choices.resize(std::max(same->choices.size(), layer.choices.size()));
    for (size_t i = 0; i < layer.choices.size(); ++i) {
      same->choices[i] += layer.choices[i];
    }
  }
}

std::optional<Point> ExpertLoads::PointOf(
    int64_t step, const Sums& sums,
    const google::protobuf::RepeatedField<double>& values) {
  if (SumElements(sums) != values.size()) return std::nullopt;
  Point point{.first = step, .last = step, .layers = {}};
  int64_t first = 0;
  for (const Sum& sum : sums) {
    if (sum.name() == kExpertTokensSum) {
      const auto begin = values.begin() + first;
      point.layers.push_back(
          {sum.unit(), std::vector<float>(begin, begin + sum.elements())});
    }
    first += sum.elements();
  }
  if (point.layers.empty()) return std::nullopt;
  return point;
}

void ExpertLoads::Add(Point point) {
  if (!points_.has_value()) {
    points_.emplace(std::clamp(kCellsMax / std::max<size_t>(1, CellsOf(point)),
                               kPointsMin, kPointsMax));
  }
  points_->Add(std::move(point));
}

const std::vector<Point>& ExpertLoads::points() const {
  static const auto* const kNone = new std::vector<Point>;
  return points_.has_value() ? points_->points() : *kNone;
}

int64_t ExpertLoads::stride() const {
  return points_.has_value() ? points_->stride() : 1;
}

}  // namespace troupe

// Points along a job's steps, from the first step on, in bounded memory. Steps
// that lie side by side share a point; when there are too many points,
// neighbours become one and each stands for twice as many steps.
//
// A Point has the steps `first` and `last`, both included, and a function
// Join(Point& point, const Point& later) that is found by its argument.
#ifndef TROUPE_SCHEDULER_CLUSTER_THINNED_H_
#define TROUPE_SCHEDULER_CLUSTER_THINNED_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe {

template <class Point>
class Thinned {
 public:
  // `points_max` is at least 2.
  explicit Thinned(size_t points_max) : points_max_(points_max) {}

  // Of one step. Steps come in ascending order. One that does not takes the
  // place of those from there on: a run was resumed from before them.
  void Add(Point point) {
    const int64_t step = point.first;
    while (!points_.empty() && points_.back().first >= step) points_.pop_back();
    while (!InLastPoint(step) && points_.size() >= points_max_) Halve();
    if (InLastPoint(step)) {
      Join(points_.back(), point);
    } else {
      points_.push_back(std::move(point));
    }
  }

  const std::vector<Point>& points() const { return points_; }
  // How many steps a point stands for, a power of two.
  int64_t stride() const { return stride_; }

 private:
  bool Together(int64_t one, int64_t other) const {
    return (one - 1) / stride_ == (other - 1) / stride_;
  }
  bool InLastPoint(int64_t step) const {
    return !points_.empty() && Together(points_.back().first, step);
  }

  void Halve() {
    stride_ *= 2;
    std::vector<Point> halved;
    for (Point& point : points_) {
      if (!halved.empty() && Together(halved.back().first, point.first)) {
        Join(halved.back(), point);
      } else {
        halved.push_back(std::move(point));
      }
    }
    points_ = std::move(halved);
  }

  size_t points_max_;
  int64_t stride_ = 1;
  std::vector<Point> points_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_THINNED_H_

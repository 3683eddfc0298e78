// What estimates err by, as simulations tell it. Candidates that share units by
// the same rows err alike, and more so with the same schedule. So the ratio of
// simulation and estimate of one tells of the next one.
#ifndef TROUPE_SCHEDULER_SEARCH_ESTIMATE_ERRORS_H_
#define TROUPE_SCHEDULER_SEARCH_ESTIMATE_ERRORS_H_

#include <limits>
#include <map>
#include <string>

#include "scheduler/search/space.h"

namespace troupe {

// What candidates that are alike have in common: the rows in use, without their
// numbers of ranks; and of these, the schedule and the level of ZeRO.
struct Family {
  std::string rows;
  std::string own;
};
Family FamilyOf(const Candidate& candidate);

class EstimateErrors {
 public:
  // `assumed`: no step is shorter than an estimate / (1 + assumed). Infinite:
  // nothing is ever told.
  explicit EstimateErrors(double assumed) : assumed_(assumed) {}

  // A simulated step over its estimate; and what its fullest rank needs of
  // memory over that bound.
  void Add(const Family& family, double ratio, double memory_ratio = 1);

  // The mean of those that are most like it, of which there are any.
  double Expected(const Family& family) const;
  // The least of the family; 1: none is known.
  double LeastMemory(const Family& family) const;
  // That no candidate of the family is below: once kTold were simulated, the
  // least of those that are most like it, of which there are kToldOfFamily, or
  // of all; and kMargin less.
  double Least(const Family& family) const;

  static constexpr int kTold = 8;
  static constexpr int kToldOfFamily = 3;
  static constexpr double kMargin = 0.05;

 private:
  struct Told {
    int count = 0;
    double sum = 0;
    double least_memory = std::numeric_limits<double>::infinity();
    double least = std::numeric_limits<double>::infinity();
    void Add(double ratio, double memory_ratio);
  };

  // Of count_min or more, those that are most like it; else all.
  const Told& LikeIt(const Family& family, int count_min) const;

  const double assumed_;
  Told all_;
  std::map<std::string, Told> rows_;
  std::map<std::string, Told> families_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_ESTIMATE_ERRORS_H_

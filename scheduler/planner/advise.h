// What is said of a way of sharing ranks, beside the others: the last column of
// `troupe plan --explain`. All of it is arithmetic on what was predicted.
#ifndef TROUPE_SCHEDULER_PLANNER_ADVISE_H_
#define TROUPE_SCHEDULER_PLANNER_ADVISE_H_

#include <string>

#include "proto/explanation.pb.h"

namespace troupe {

// Of the ways' `index`th, which fits. Of the first, what its step is limited
// by; of others, what its step spends more on than the first's, in parts of the
// first's step. Of all, what links of twice the bandwidth would change for it,
// and where it would stand, every way having them.
std::string AdviceOf(const Explanation& explanation, int index);

// Of one that does not fit.
std::string LackText(const ExplainedWay& way);
std::string NoRemedyText(const ExplainedWay& way);
struct CheapestRemedy {
  std::string change;  // Remedy::Text()
  double longer = 0;
};
std::string RemedyText(const Explanation& explanation, int index,
                       const CheapestRemedy& remedy);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_ADVISE_H_

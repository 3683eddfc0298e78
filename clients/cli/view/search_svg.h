// The picture of a search (`troupe plan --explain --picture`): everything that
// was estimated, by the memory and the time of its step.
#ifndef TROUPE_CLIENTS_CLI_VIEW_SEARCH_SVG_H_
#define TROUPE_CLIENTS_CLI_VIEW_SEARCH_SVG_H_

#include <string>

#include "proto/explanation.pb.h"

namespace troupe {

// An SVG picture that stands alone. Across: memory of the device on the fullest
// rank; up: seconds of a step; both logarithmic. A dot is an estimate that
// fits, a cross one that does not, a ring a plan that was simulated. The line
// is the frontier: the shortest step that fits into so much memory. Estimates
// within a pixel of each other are drawn once. Titles, which a browser shows
// under the pointer, say the numbers. REQUIRES Explanation.search and a way.
std::string SearchSvg(const Explanation& explanation);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_SEARCH_SVG_H_

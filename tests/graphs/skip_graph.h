// A model with a skip from its first block to its last, written as a graph: a
// GPT-2 whose last block adds what the first one made, and whose head does,
// too.
#ifndef TROUPE_TESTS_GRAPHS_SKIP_GRAPH_H_
#define TROUPE_TESTS_GRAPHS_SKIP_GRAPH_H_

#include <string>

#include "proto/job.pb.h"

namespace troupe {

struct SkipSizes {
  int blocks = 6;
  int hidden = 24;
  int heads = 3;
  int intermediate = 96;
  int vocabulary = 61;
  int positions = 20;
  double init_std = 0.02;
  bool tied = true;
};
std::string SkipGraph(const SkipSizes& sizes);

// A resolved model of it.
ModelSpec SkipModel(const SkipSizes& sizes);

}  // namespace troupe

#endif  // TROUPE_TESTS_GRAPHS_SKIP_GRAPH_H_

// Units whose every element a test can afford to change: those of the models,
// and some that no model has, for what ops do to their neighbours.
#ifndef TROUPE_TESTS_WORKER_MODEL_SMALL_UNITS_H_
#define TROUPE_TESTS_WORKER_MODEL_SMALL_UNITS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "proto/plan/unit_list.h"

namespace troupe {

struct SmallUnit {
  std::string name;
  UnitList (*units)(double dropout);
  int index = 0;         // of the unit in the list
  bool dropout = false;  // whether it has any
};

// As GoogleTest shows it.
inline void PrintTo(const SmallUnit& unit, std::ostream* out) {
  *out << unit.name;
}

inline constexpr int64_t kSmallSequences = 2;
inline constexpr int64_t kSmallLength = 4;
inline constexpr int64_t kSmallVocabulary = 11;
inline constexpr int64_t kSmallPositions = 8;

// Of kSmallSequences x kSmallLength tokens.
std::vector<SmallUnit> SmallUnits();

// Tokens, then targets, of which two do not count.
std::vector<int32_t> SmallBatch();

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_MODEL_SMALL_UNITS_H_

// Random choices of tests that draw: a pure function of a seed and a number.
#ifndef TROUPE_TESTS_EQUIVALENCE_DICE_H_
#define TROUPE_TESTS_EQUIVALENCE_DICE_H_

#include <cstdint>
#include <initializer_list>

#include "proto/base/philox.h"

namespace troupe {

class Dice {
 public:
  Dice(uint64_t seed, int number)
      : stream_{.seed = seed,
                .purpose = RandomPurpose::kSampling,
                .site = static_cast<uint32_t>(number)} {}

  // One of 0 to count - 1.
  int Below(int count) {
    return static_cast<int>(PhiloxUint32(stream_, thrown_++) % count);
  }
  bool Even() { return Below(2) == 0; }
  // What stands there twice comes twice as often.
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int>(values.size())));
  }

 private:
  const PhiloxStream stream_;
  uint64_t thrown_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_DICE_H_

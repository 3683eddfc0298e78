// Whether an index that a message has is one of the list that it points into.
#ifndef TROUPE_PROTO_PLAN_INDEX_H_
#define TROUPE_PROTO_PLAN_INDEX_H_

namespace troupe {

inline bool IsIndexIn(int index, int size) {
  return index >= 0 && index < size;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_INDEX_H_

// How deep a template and its values may be nested, so that none can exhaust
// the stack.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_NESTING_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_NESTING_H_

namespace troupe::chat {

inline constexpr int kNestingMax = 200;  // of a tree
inline constexpr int kValueDepthMax = 200;
// Of a tree that is run: macros may call each other.
inline constexpr int kDepthMax = 1000;

// Counts one level while it lives.
class Nested {
 public:
  explicit Nested(int& depth) : depth_(depth) { ++depth_; }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int& depth_;
};

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_NESTING_H_

// RunContext: what differs from one activation to the next, and from thread to thread.
#pragma once

namespace interp {

class RunObserver;

struct RunContext {
  // Shapes are inferred even where the plan calls them static.
  bool infer_all = false;
  RunObserver* observer = nullptr;  // null: nobody
  int worker = 0;                   // the thread, as observers know it
};

}  // namespace interp

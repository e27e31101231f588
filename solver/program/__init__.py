"""The mixed-integer program of a configuration: a fixed number of stages, integer ticks and bytes.

Sets
    i    groups of layers (G), k stages (S), r ranks (R) that run them, p pairs (a, b) of stages that exchange tensors,
         t tensors, q storages that several groups hold, n locations, l classes of path, j moments at which a rank can
         be fullest
Parameters
    f_i, b_i, v_i forward time of a group, backward time, and where the schedule splits the backward pass input gradient
                  and weight gradient;  tau_tl time of a tensor on a class of path, lat_l its latency
    w_i, a_i, d_i bytes of a group's model state, of every microbatch in flight, and of one whose weight gradient is
                  left;  s_i its workspace
    m_kj, o_kj    microbatches that stage k keeps at moment j, in flight and for their weight gradients
Variables
    g_ik in {0,1} group i is on stage k or later;  x_ik = g_ik - g_i,k+1 is an expression
    u_k in {0,1}  stage k is used; 1 but for stages at the front that may be empty
    y_rn in {0,1} rank r is on location n;  z_pl in {0,1} pair p of stages on different ranks uses a path of class l
    h_qr in {0,1} rank r holds storage q (what is saved for the backward pass counts for every stage by itself)
    v_tp in {0,1} tensor t passes between pair p (cross, sent), or is made for or read from other stages (write, read);
                  where the thresholds alone say so, an expression;  v_p in {0,1} anything passes
    F_k, B_k      computing times (F_k, I_k, W_k where the backward pass is split);  c_p, d_p forward and backward
                  transfer times, none between stages of one rank;  X_r workspace
    N, N_ab       bytes between nodes, all and between two stages;  a_qr in {0,1} ranks q and r are on different nodes
    O, S_i        a weighted sum and its parts, in units of the sum
    T, P, M, I    makespan, bottleneck, peak memory, iteration time;  R longest all-reduce of replicas;  A_q all-reduce
                  of a tied weight on n ranks, counted by e_qn in {0,1}
Constraints (in parentheses the names of their rows)
    C1  stage order       g_i,k+1 <= g_ik                                                          (stage_order)
    C2  layer order       g_ik <= g_jk for every forward tensor i -> j                             (layer_order)
                          g_i+1,k+1 <= g_ik where all groups are in one order                      (next_stage)
    C3  filled stages     sum_i x_ik >= u_k                                                        (filled)
                          g_i,k+1 >= 1 - u_k                                                       (used)
    C4  intervals         g_ik <= g_j,k+1 from pruning, where every stage is an interval           (interval)
    C5  apart             sum_i x_ik <= 1 over groups kept apart                                   (apart)
    C6  loads             F_k = sum_i f_i x_ik,  B_k = sum_i b_i x_ik                              (load)
    C7  holding           h_qr >= sum of x_ik over the stages of r, for every group of storage q   (hold)
    C8  memory            sum over the stages of r and i of (w_i + m_kj a_i + o_kj d_i) x_ik
                          + held + received + X_r + reserve <= capacity at every moment j of r     (memory)
                          X_r >= s_i x_ik                                                          (workspace)
    C9  placement         sum_n y_rn = u_r                                                         (placed)
                          sum_r y_rn <= slots_n                                                    (slots)
                          alike locations in order of first use                                    (first_use)
    C10 path classes      z_pl >= y_an + u_b - sum_{n': class(n,n')!=l} y_bn' - 1, from either end  (path_class)
                          of c + 1 ranks in a row, c the most on a node, two change the node       (node_change)
    C11 transfers         c_p >= lat_l + sum_t tau_tl v_tp where z_pl = 1, likewise d_p            (transfer)
                          v_tp >= g_jk+1 - g_ik+1, or x_ia + x_jb - 1, for readers j of i          (crossing_tensor)
                          v_p >= v_tp                                                              (used_pair)
    C12 path cuts         T >= sum_k (alpha_k F_k + beta_k B_k) + sum_p (gamma_p c_p + delta_p d_p),
                          with what the host's memory takes added to F_k and B_k (or I_k)          (path)
    C13 bottleneck        P >= busy_r; overlapped also P >= c_p, P >= d_p                          (bottleneck)
        peak memory       M >= memory of rank r at moment j                                        (peak_memory)
    C14 once per          I >= T + R + sum_q A_q + optimizer step                                  (iteration)
        iteration         R >= all-reduce of rank r                                                (replicas)
                          sum_n e_qn <= 1                                                          (tied_once)
                          sum_r h_qr <= 1 + sum_n (n - 1) e_qn                                     (tied_stages)
                          A_q >= all-reduce over n ranks on the best path, and  on the paths taken (tied, tied_path)
    C15 cutoffs           upper bounds of I, P and capacity: the limits, and for the objective less than the best plan
                          by the gap allowed or by what the backend can tell
    C16 no-good cuts      at least one decision differs from each plan already ranked              (no_good)
    C17 ways              sum_w v_ikw = x_ik over the ways w to run group i (or a layer of it): a kind of device and
                          an option of recompute; what a way takes beyond the least is added to loads and memory  (way)
                          of groups that the same ways cost the same, v counts those on a stage by way
                          v_ikw <= sum of y_rn over the locations of that kind                     (way_kind)
                          one option for a stage where recompute is chosen by stage     (stage_option, way_option)
    C18 traffic           a_qr >= y_qn - y_rn summed over a node n, less 1 - u_r                   (apart)
                          N_ab >= bytes of the tensors that pass - the most (1 - a_qr), ranks q, r (sent_apart)
                          N >= m sum_ab N_ab                                                       (traffic)
    C19 sums              over_i S_i >= times_i metric_i                                           (part)
                          O >= sum_i S_i                                                           (sum)
Objective
    the smallest I, P, M, N or O; all plans of a configuration use equally many devices

``assignment`` holds C1 to C5, ``memory`` C7 and C8, ``placement`` C9 and C10, ``crossings`` and ``transfers`` C11,
``timing`` C6 and C12 to C14, ``ways`` C17, ``traffic`` C18, ``sums`` C19, ``builder`` the rest.
"""

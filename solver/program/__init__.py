"""The mixed-integer program of a configuration: a fixed number of stages, integer ticks and bytes.

Sets
    i    groups of layers (G), k stages (S), p pairs of stages that exchange tensors, t tensors, q storages that several
         groups hold, n locations, l classes of path
Parameters
    f_i, b_i      forward and backward time of a group;  tau_tl time of a tensor on a class of path, lat_l its latency
    w_i, a_i      bytes of a group's model state, and of every microbatch in flight;  s_i its workspace
    m_k           microbatches in flight on stage k
Variables
    g_ik in {0,1} group i is on stage k or later;  x_ik = g_ik - g_i,k+1 is an expression
    y_kn in {0,1} stage k is on location n;  z_pl in {0,1} pair p uses a path of class l
    h_qk in {0,1} stage k holds storage q
    F_k, B_k      computing times;  c_p, d_p forward and backward transfer times;  T, P, M, I makespan, bottleneck,
                  peak memory, iteration time
Constraints
    C1  stage order       g_i,k+1 <= g_ik
    C2  layer order       g_ik <= g_jk                       for every forward tensor i -> j
    C3  filled stages     sum_i x_ik >= 1
    C4  intervals         g_ik <= g_j,k+1                    from pruning, where every stage is an interval
    C5  apart             sum_i x_ik <= 1                    over the groups kept apart
    C6  loads             F_k = sum_i f_i x_ik,  B_k = sum_i b_i x_ik
    C7  holding           h_qk >= x_ik                       for every group of storage q
    C8  memory            sum_i (w_i + m_k a_i) x_ik + held + received + workspace + reserve <= capacity
    C9  placement         sum_n y_kn = 1,  sum_k y_kn <= slots_n,  alike locations in order of first use
    C10 path classes      z_pl >= y_an + sum_{n': class(n,n')=l} y_bn' - 1
    C11 transfers         c_p >= lat_l + sum_t tau_tl cross_tp  where z_pl = 1
    C12 path cuts         T >= sum_k (alpha_k F_k + beta_k B_k) + sum_p (gamma_p c_p + delta_p d_p)
    C13 bottleneck        P >= busy_k  (overlapped: P >= c_p, P >= d_p)
    C14 once per iteration I = T + all-reduce of replicas + all-reduces of tied weights + optimizer step
    C15 cutoffs           objective <= best - 1;  I, P, M <= their limits
    C16 no-good cuts      at least one decision differs from each plan already ranked
Objective
    the smallest I, P or M

``assignment`` holds C1 to C5, ``memory`` C7 and C8, ``placement`` C9 and C10, ``transfers`` C11, ``timing`` C6 and C12
to C14, ``builder`` the rest.
"""

// x
export {};
